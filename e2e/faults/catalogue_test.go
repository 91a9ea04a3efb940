package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// A name in the catalogue that no test has would only show when all thirty faults are made.
func TestCatalogue_NamesOnlyTestsThatExist(t *testing.T) {
	t.Parallel()
	there := map[string][]string{} // by package
	for _, f := range catalogue() {
		for pkg, names := range f.tests {
			if there[pkg] == nil {
				there[pkg] = testsOf(t, filepath.Join("../..", pkg))
			}
			for _, name := range names {
				if !slices.Contains(there[pkg], name) {
					t.Errorf("%s: %s has no %s", f.id, pkg, name)
				}
			}
		}
	}
}

func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", dir, err)
	}
	var names []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

func TestCatalogue_EveryFaultIsShownAndEveryRowHasItsPlace(t *testing.T) {
	t.Parallel()
	list := catalogue()
	if len(list) != 30 {
		t.Errorf("%d faults, want 30", len(list))
	}
	for _, f := range list {
		if len(f.tests) == 0 && !slices.ContainsFunc(rows(), f.has) {
			t.Errorf("nothing shows %s, %s", f.id, f.what)
		}
	}
	id, seen := regexp.MustCompile(`^F\d+`), map[string]bool{}
	for _, r := range rows() {
		if seen[r.name] {
			t.Errorf("two rows have the name %q", r.name)
		}
		seen[r.name] = true
		if id.MatchString(r.name) && !slices.ContainsFunc(list, func(f fault) bool { return f.has(r) }) {
			t.Errorf("%q names no fault of the catalogue", r.name)
		}
	}
}
