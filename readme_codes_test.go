package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parseSource reads what the program is made of, by folder: no tests, no stand-ins, no tools.
func parseSource(t *testing.T) map[string][]*ast.File {
	t.Helper()
	source := map[string][]*ast.File{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && notProduct(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			source[filepath.Dir(path)] = append(source[filepath.Dir(path)], file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func notProduct(folder string) bool {
	return folder == "node_modules" || folder == "e2e" || folder == "gallery" || strings.HasPrefix(folder, ".") ||
		len(folder) > 4 && strings.HasSuffix(folder, "test")
}

// coded is what a variable, parameter, field or constant is called that holds a code.
var (
	coded = regexp.MustCompile(`^(?i:code|rule|failureCode)$`)
	named = regexp.MustCompile(`^(?i:code)[A-Z]`)
	code  = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
)

// codes gathers by what things are called: an argument of a parameter called code, a field, a
// variable or a result of that name, and the constants that are called so or are of type Code.
type codes struct {
	found     map[string]string            // code to folder
	constants map[string]map[string]string // by package, by name
	takes     map[string]int               // "name/number of parameters" of a function to the place of its code
	folder    string
}

func collectCodes(source map[string][]*ast.File) map[string]string {
	c := &codes{found: map[string]string{}, constants: map[string]map[string]string{}, takes: map[string]int{}}
	c.each(source, c.declaration)
	c.each(source, c.use)
	return c.found
}

func (c *codes) each(source map[string][]*ast.File, look func(ast.Node) bool) {
	for folder, files := range source {
		c.folder = folder
		for _, file := range files {
			ast.Inspect(file, look)
		}
	}
}

func (c *codes) pkg() string { return filepath.Base(c.folder) }

// declaration learns the constants and which functions take a code.
func (c *codes) declaration(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if at, of, ok := place(n.Type); ok {
			c.takes[n.Name.Name+"/"+strconv.Itoa(of)] = at
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i >= len(n.Values) {
				continue
			}
			value, ok := text(n.Values[i])
			if !ok {
				continue
			}
			if c.constants[c.pkg()] == nil {
				c.constants[c.pkg()] = map[string]string{}
			}
			c.constants[c.pkg()][name.Name] = value
			if typed, ok := n.Type.(*ast.Ident); ok && typed.Name == "Code" || named.MatchString(name.Name) {
				c.add(n.Values[i])
			}
		}
	}
	return true
}

// place is where among its parameters a function takes a code.
func place(f *ast.FuncType) (at, of int, found bool) {
	at = -1
	for _, p := range f.Params.List {
		for _, name := range p.Names {
			if coded.MatchString(name.Name) {
				at = of
			}
			of++
		}
	}
	return at, of, at >= 0
}

// use collects where a code is put.
func (c *codes) use(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		for of := 1; of <= len(n.Args)+1; of++ { // a variadic function may be given fewer or more
			at, ok := c.takes[calledName(n.Fun)+"/"+strconv.Itoa(of)]
			if ok && at < len(n.Args) && (of == len(n.Args) || calledName(n.Fun) == "Failed") {
				c.add(n.Args[at])
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && coded.MatchString(key.Name) {
			c.add(n.Value)
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if coded.MatchString(calledName(left)) && len(n.Rhs) == len(n.Lhs) {
				c.add(n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if coded.MatchString(name.Name) && i < len(n.Values) {
				c.add(n.Values[i])
			}
		}
	case *ast.FuncDecl:
		c.returned(n)
	}
	return true
}

// returned collects what a function with a result called code returns.
func (c *codes) returned(f *ast.FuncDecl) {
	if f.Type.Results == nil || f.Body == nil {
		return
	}
	at, _, ok := place(&ast.FuncType{Params: f.Type.Results})
	if !ok {
		return
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && at < len(r.Results) {
			c.add(r.Results[at])
		}
		return true
	})
}

// add resolves an expression that is a code, or one of several.
func (c *codes) add(e ast.Expr) {
	if value, ok := text(e); ok {
		if code.MatchString(value) {
			c.found[value] = c.folder
		}
		return
	}
	switch e := e.(type) {
	case *ast.Ident:
		c.constant(c.pkg(), e.Name)
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			c.constant(of.Name, e.Sel.Name)
		}
	case *ast.CallExpr:
		if name := calledName(e.Fun); slices.Contains([]string{"Or", "string"}, name) {
			for _, arg := range e.Args {
				c.add(arg)
			}
		}
	}
}

func (c *codes) constant(pkg, name string) {
	if value := c.constants[pkg][name]; code.MatchString(value) {
		c.found[value] = c.folder
	}
}

func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// calledName is the last name of what is called or assigned.
func calledName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
