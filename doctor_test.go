package main

import "testing"

func TestDoctor_TellsAnUnsetImageFromAMissingOne(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		image         string
		ready         bool
		state, detail string
	}{
		{"", false, absent, "SANDBOX_IMAGE is not set"},
		{"some/image:1", false, absent, "some/image:1 is not on the Docker host"},
		{"some/image:1", true, fine, "some/image:1"},
	} {
		if got := checkImage(test.image, test.ready); got.state != test.state || got.detail != test.detail {
			t.Errorf("image %q, ready %t: %+v", test.image, test.ready, got)
		}
	}
}
