package docker

import (
	"testing"

	"agent-sandboxing/core"
)

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
