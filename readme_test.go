package main

import (
	"go/ast"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agent-sandboxing/core/config"
)

// page is a document, or one section of it: from its heading to the next one of the same level.
func page(t *testing.T, file, heading string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if heading == "" {
		return string(b)
	}
	_, rest, found := strings.Cut(string(b), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", file, heading)
	}
	level := heading[:strings.IndexByte(heading, ' ')]
	for _, end := range []string{"\n# ", "\n## ", "\n### "} {
		if len(end)-2 <= len(level) {
			rest, _, _ = strings.Cut(rest, end)
		}
	}
	return rest
}

var (
	entry = regexp.MustCompile("(?m)^(?:\\| |- )((?:`[^`]+`(?:, )?)+)")
	quote = regexp.MustCompile("`([^`]+)`")
)

// entries maps each name in front of a table's row or a list's line to that line.
func entries(section string) map[string]string {
	lines := map[string]string{}
	for line := range strings.Lines(section) {
		for _, name := range quote.FindAllStringSubmatch(entry.FindString(line), -1) {
			lines[name[1]] = line
		}
	}
	return lines
}

// Every code that the program can show or store is in the list, and no other.
func TestOperations_ListEveryCode(t *testing.T) {
	t.Parallel()
	codes := collectCodes(parseSource(t))
	if len(codes) < 150 {
		t.Fatalf("found only %d codes: the search is broken", len(codes))
	}
	listed := entries(page(t, "OPERATIONS.md", "## Codes"))
	for code, place := range codes {
		if listed[code] == "" {
			t.Errorf("OPERATIONS.md does not list %s, made in %s", code, place)
		}
	}
	for code := range listed {
		if codes[code] == "" {
			t.Errorf("OPERATIONS.md lists %s, which the program does not know", code)
		}
	}
}

// Every event type is there with every field of its payload.
func TestOperations_ListEveryEvent(t *testing.T) {
	t.Parallel()
	types, fields := collectEvents(parseSource(t)["core"])
	if len(types) < 30 {
		t.Fatalf("found only %d event types: the search is broken", len(types))
	}
	listed := entries(page(t, "OPERATIONS.md", "## Events"))
	for event, payload := range types {
		line, found := listed[event]
		if !found {
			t.Errorf("OPERATIONS.md does not list the event %s", event)
		}
		_, cells, _ := strings.Cut(line, "` |")
		for _, field := range fields[payload] {
			if found && !strings.Contains(cells, "`"+field+"`") {
				t.Errorf("OPERATIONS.md does not say that %s has a %s", event, field)
			}
		}
	}
	for event := range listed {
		if types[event] == "" {
			t.Errorf("OPERATIONS.md lists the event %s, which the program does not know", event)
		}
	}
}

// The table of variables is that of core/config, with its defaults.
func TestOperations_ListEveryVariable(t *testing.T) {
	t.Parallel()
	listed := entries(page(t, "OPERATIONS.md", "## Configuration"))
	known := variables(reflect.TypeFor[config.Config](), "")
	for name, fallback := range known {
		switch line := listed[name]; {
		case line == "":
			t.Errorf("OPERATIONS.md does not list %s", name)
		case !strings.Contains(line, "`"+fallback+"`") && fallback != "":
			t.Errorf("OPERATIONS.md does not say that %s defaults to %s", name, fallback)
		}
	}
	for name := range listed {
		if _, found := known[name]; !found {
			t.Errorf("OPERATIONS.md lists %s, which core/config does not read", name)
		}
	}
}

// What the README says to set is enough to start.
func TestREADME_SaysWhatMustBeSet(t *testing.T) {
	t.Parallel()
	samples := map[string]string{
		"GITHUB_CLIENT_ID": "id", "GITHUB_CLIENT_SECRET": "secret", "GITHUB_APP_ID": "7", "GITHUB_APP_PRIVATE_KEY_FILE": "core/config/testdata/key.pem",
		"OPENROUTER_API_KEY": "key", "SANDBOX_IMAGE": "some/image:1", "ALLOWED_LOGINS": "octo-dev", "PUBLIC_URL": "https://agent.example.org",
	}
	vars := map[string]string{"HOME": "/home/octo-dev"}
	for name := range entries(strings.ReplaceAll(page(t, "README.md", "## Run it for real"), "\n   |", "\n|")) {
		if samples[name] == "" {
			t.Errorf("no sample for %s", name)
		}
		vars[name] = samples[name]
	}
	if _, err := config.Parse(config.Serve, vars); err != nil {
		t.Errorf("with what the README says to set: %v", err)
	}
}

// variables are the names that a configuration struct is read from, with their defaults.
func variables(of reflect.Type, prefix string) map[string]string {
	found := map[string]string{}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case name != "":
			found[prefix+name] = field.Tag.Get("envDefault")
		case field.Type.Kind() == reflect.Struct:
			for name, fallback := range variables(field.Type, prefix+field.Tag.Get("envPrefix")) {
				found[name] = fallback
			}
		}
	}
	return found
}

// Every folder is in the map, and every path and target that people are told of exists.
func TestDocuments_NameOnlyWhatIsThere(t *testing.T) {
	t.Parallel()
	text := page(t, "README.md", "") + page(t, "OPERATIONS.md", "")
	for _, folder := range folders(t) {
		if !strings.Contains(page(t, "README.md", "## Where things are"), "`"+folder+"/") {
			t.Errorf("the map of folders lacks %s", folder)
		}
	}
	for _, path := range regexp.MustCompile(`\b(?:scripts|core|sandbox|agent)/[a-z/-]*[a-z]`).FindAllString(text, -1) {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the documents name %s: %v", path, err)
		}
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(makefile), "\n"+target[1]+":") {
			t.Errorf("the documents name make %s, which the Makefile does not know", target[1])
		}
	}
}

// People are told beforehand which packages are installed on their machine.
func TestREADME_NamesWhatIsInstalled(t *testing.T) {
	t.Parallel()
	setup, err := os.ReadFile("scripts/setup")
	if err != nil {
		t.Fatal(err)
	}
	_, demoAndTest, _ := strings.Cut(string(setup), "  demo | test | faults)\n")
	demoAndTest, _, _ = strings.Cut(demoAndTest, ";;")
	packages := []string{"postgresql"}
	for _, need := range regexp.MustCompile(`(?m)^ +need \S+ (.+)$`).FindAllStringSubmatch(demoAndTest, -1) {
		packages = append(packages, strings.Fields(need[1])...)
	}
	if len(packages) < 8 {
		t.Fatalf("found only %v: the search is broken", packages)
	}
	text := page(t, "README.md", "## Try it")
	for _, p := range packages {
		if p != "git" && !strings.Contains(text, "`"+p+"`") { // git is what one has already
			t.Errorf("the README does not say that %s is installed", p)
		}
	}
}

// folders are those at the top that are kept in git and not hidden.
func folders(t *testing.T) []string {
	t.Helper()
	ignored, err := os.ReadFile(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, f := range all {
		if f.IsDir() && f.Name()[0] != '.' && !strings.Contains(string(ignored), "/"+f.Name()+"/\n") {
			kept = append(kept, f.Name())
		}
	}
	if len(kept) < 10 {
		t.Fatalf("found only the folders %v: the search is broken", kept)
	}
	return kept
}

// collectEvents maps each event type of core to its payload's struct, and each struct to the names
// of its fields in JSON.
func collectEvents(files []*ast.File) (types map[string]string, fields map[string][]string) {
	types, fields = map[string]string{}, map[string][]string{}
	constants := map[string][]string{} // values by type
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					fields[n.Name.Name] = jsonNames(s)
				}
			case *ast.ValueSpec:
				if typed, ok := n.Type.(*ast.Ident); ok {
					for _, v := range n.Values {
						constants[typed.Name] = append(constants[typed.Name], literals(v)...)
					}
				}
			}
			return true
		})
	}
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "EventType" || f.Recv == nil {
				continue
			}
			payload := f.Recv.List[0].Type.(*ast.Ident).Name
			names := literals(f.Body)
			if len(names) == 0 { // PublicationChanged: each of the constants
				names = constants["EventType"]
			}
			for _, name := range names {
				if !strings.HasSuffix(name, "_") {
					types[name] = payload
					continue
				}
				for _, state := range constants["SandboxState"] {
					types[name+state] = payload
				}
			}
		}
	}
	return types, fields
}

func jsonNames(s *ast.StructType) []string {
	var names []string
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value) // the parser has read it
		if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// literals are the strings below a node, without duplicates.
func literals(n ast.Node) []string {
	var found []string
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			if s, err := strconv.Unquote(lit.Value); err == nil && strings.HasPrefix(lit.Value, `"`) && !slices.Contains(found, s) {
				found = append(found, s)
			}
		}
		return true
	})
	return found
}
