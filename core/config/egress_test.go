package config

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse_TheNetworkOfSandboxes(t *testing.T) {
	t.Parallel()
	vars := valid()
	if c, err := Parse(Serve, vars); err != nil || c.Egress.EgressMode != "open" {
		t.Errorf("the default: %+v, %v", c.Egress, err)
	}
	set := maps.Clone(vars)
	set["EGRESS_MODE"], set["EGRESS_ALLOW"], set["EGRESS_ALLOW_PRIVATE"], set["EGRESS_MAX_MIB"] = "allowlist", " Registry.EXAMPLE.net., *.Example.com ,", " Nexus:8081,mirror.corp.example:443", "100"
	c, err := Parse(Serve, set)
	want := Egress{EgressMode: "allowlist", EgressMaxMiB: 100, EgressAllow: []string{"registry.example.net", "*.example.com"}, EgressAllowPrivate: []string{"nexus:8081", "mirror.corp.example:443"}}
	if diff := cmp.Diff(want, c.Egress); diff != "" || err != nil {
		t.Errorf("%v -want +got\n%s", err, diff)
	}
	for name, value := range map[string]string{
		"EGRESS_MODE": "closed", "EGRESS_ALLOW": "https://example.com", "EGRESS_ALLOW_PRIVATE": "nexus", "EGRESS_MAX_MIB": "-1", "SANDBOX_CA_FILE": "testdata/key.pem",
	} {
		bad := maps.Clone(vars)
		bad[name] = value
		if _, err := Parse(Serve, bad); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for _, target := range []string{"10.0.0.1:443", "[::1]:443", "nexus:0", "nexus:70000", "*.corp.example:443", "https://nexus:1", "nexus:http"} {
		bad := maps.Clone(vars)
		bad["EGRESS_ALLOW_PRIVATE"] = target
		if _, err := Parse(Serve, bad); err == nil {
			t.Errorf("EGRESS_ALLOW_PRIVATE=%s was accepted", target)
		}
	}
}

// Whoever corrects a list wants to hear of all of it at once.
func TestParse_NamesEveryBadEntryOfAList(t *testing.T) {
	t.Parallel()
	vars := valid()
	vars["EGRESS_ALLOW"], vars["EGRESS_ALLOW_PRIVATE"] = "https://one.example.com,good.example.com,*", "nexus,mirror:8081,10.0.0.1:443"
	_, err := Parse(Serve, vars)
	for _, entry := range []string{`"https://one.example.com"`, `"*"`, `"nexus"`, `"10.0.0.1:443"`} {
		if err == nil || !strings.Contains(err.Error(), entry) {
			t.Errorf("%s is not named: %v", entry, err)
		}
	}
	if err != nil && strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("not one line for each:\n%v", err)
	}
}
