package docker

import (
	"testing"

	"agent-sandboxing/core"
)

func TestLacks(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"git version 2.39.5\n":   "",
		"git version 2.34.1\n":   "",
		"git version 3.0\n":      "",
		"git version 2.33.8\n":   `git 2.34 (it has "2.33.8")`,
		"git version 1.99\n":     `git 2.34 (it has "1.99")`,
		"git version nonsense\n": `git 2.34 (it has "nonsense")`,
		"":                       `git 2.34 (it has "")`,
		"missing timeout\nmissing wc\ngit version 2.39.5\n":    "timeout, wc",
		"git version 2.46.0 (Apple Git-1)\n":                   "",
		"motd\ngit version 2.39.5.windows.1\nmissing nothing ": "nothing",
	} {
		if got := lacks(output); got != want {
			t.Errorf("lacks(%q) = %q, want %q", output, got, want)
		}
	}
}

func TestInject_SaysWhenTheBuildHoldsNoToolbox(t *testing.T) {
	t.Parallel()
	r, err := New(Config{Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.inject(t.Context(), "riscv64", ""); core.CodeOf(err) != "toolbox_missing" {
		t.Errorf("error %v", err)
	}
}
