package tools

import "testing"

// A line that only says that text was left out would delete that text. A line that merely looks a
// little like it is somebody's code.
func TestPlaceholder_IsToldFromCode(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"// ... rest of the code", "// rest of the code…", "# existing imports ...", "    // the rest of the file", "… existing code …",
		"... existing code ...", "/* remaining methods... */", "<!-- rest of the file unchanged -->", "// ... (rest of the file) ...",
		"{/* ... existing JSX ... */}", "-- ... rest of the query", "// (rest of the file unchanged)", "// [rest of the code remains the same]",
		"// ... unchanged ...", "# ... keep existing code ...", "// keep the rest of the file as is", "// ... other methods remain unchanged",
		"// Remaining code stays the same", "(rest of file unchanged)", "[... rest of the file ...]", "; rest of the file ...",
		"# ... rest of code stays the same", "// ...existing code...", "// … same as before …", "/* ... rest of the styles ... */",
		"\t# ... rest of the function", "// all other tests unchanged", "<rest of the file omitted>", "// ... rest",
	} {
		if n := placeholder("package x\n"+line+"\n", ""); n != 2 {
			t.Errorf("%q passes as code", line)
		}
		if n := placeholder("package x\n"+line+"\n", "before\n"+line+"\nafter\n"); n != 0 {
			t.Errorf("%q is refused although it was there", line)
		}
	}
	for _, line := range []string{
		"...rest,", "  ...existing,", "  ...other", "...previous", "  ...same }", "const x = [...];", "fmt.Println(args...)", "x := list[...]", "...",
		"// ...", "// The rest is history.", "func rest() {}", "see the remaining parts below", "# Existing users", "// existing users are migrated first",
		"// Remaining time in seconds", "// unchanged values are skipped", "... the rest of the day", "// the rest of the code is generated",
		"// other: see the manual...", "# rest api", "- the remaining items are listed below", "// previous is the element before...",
		"The rest of the file is unchanged by this call.", "// Loading...", "def f(*args): ...", "    # rest of the arguments go to the child",
	} {
		if n := placeholder("package x\n"+line+"\n", ""); n != 0 {
			t.Errorf("%q is refused", line)
		}
	}
}
