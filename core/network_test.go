package core_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
)

func TestEgressMode_TheStricterWins(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ chosen, ceiling, want core.EgressMode }{
		{core.EgressNone, core.EgressOpen, core.EgressNone},
		{core.EgressAllowlist, core.EgressOpen, core.EgressAllowlist},
		{core.EgressOpen, core.EgressAllowlist, core.EgressAllowlist},
		{core.EgressOpen, core.EgressNone, core.EgressNone},
		{"", core.EgressAllowlist, core.EgressAllowlist},
		{"anything", core.EgressNone, core.EgressNone},
	} {
		if got := test.chosen.Within(test.ceiling); got != test.want {
			t.Errorf("%q within %q is %q, want %q", test.chosen, test.ceiling, got, test.want)
		}
	}
	if diff := cmp.Diff([]core.EgressMode{core.EgressAllowlist, core.EgressNone}, core.EgressAllowlist.Modes()); diff != "" {
		t.Errorf("modes -want +got\n%s", diff)
	}
}

func TestEgressPolicy_Listed(t *testing.T) {
	t.Parallel()
	p := core.EgressPolicy{Hosts: []string{"registry.example.net", "*.example.com"}}
	for host, want := range map[string]bool{
		"registry.example.net": true, "a.example.com": true, "a.b.example.com": true,
		"example.com": false, "evilexample.com": false, "example.net": false, "x.registry.example.net": false, ".example.com": false, "": false,
	} {
		if got := p.Listed(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func TestParseEgressHost(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" Registry.EXAMple.net. ": "registry.example.net", "*.Example.com": "*.example.com", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"_dmarc.example.com": "_dmarc.example.com", "1.2.3.example": "1.2.3.example",
	} {
		if got, err := core.ParseEgressHost(in); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	for in, why := range map[string]string{
		"": "Write a host name", "*.": "stands only", "https://example.com": "without https://", "example.com/x": "without a path", "u@example.com": "without",
		"example.com:443": "port", "*": "stands only", "a.*.example.com": "stands only", "*.*.com": "stands only", "*example.com": "stands only", "*.com": "whole name",
		"localhost": "whole name", "10.0.0.1": "Addresses", "169.254.169.254": "Addresses", "::1": "port", "a..example.com": "no host name", "-a.example.com": "no host name",
		"büch.example": "no host name", "a b.example": "without", "<script>.example": "no host name", "a\x00.example": "no host name",
		strings.Repeat("a", 64) + ".example": "no host name", strings.Repeat("a.", 130) + "example": "253",
	} {
		got, err := core.ParseEgressHost(in)
		if core.CodeOf(err) != "host_invalid" || got != "" || !strings.Contains(core.MessageOf(err), why) {
			t.Errorf("%q: %q, %v, want it refused for %q", in, got, err, why)
		}
	}
}

// What is taken is a name that can be compared with what a program asks for, and is taken again.
func FuzzParseEgressHost(f *testing.F) {
	for _, s := range []string{"registry.example.net", "*.example.com", "*.", "*", "10.0.0.1", "a..b", "ünicode.example", "a\x00b.c", "EXAMPLE.COM.", "*.*.x.y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := core.ParseEgressHost(s)
		if err != nil {
			return
		}
		name, wild := strings.CutPrefix(got, "*.")
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || !strings.Contains(name, ".") || len(name) > 253 {
			t.Errorf("%q became %q", s, got)
		}
		if again, err := core.ParseEgressHost(got); again != got || err != nil {
			t.Errorf("%q became %q, which becomes %q, %v", s, got, again, err)
		}
		p := core.EgressPolicy{Hosts: []string{got}}
		if p.Listed(name) == wild || p.Listed("below."+name) != wild {
			t.Errorf("the entry %q lets through the wrong names", got)
		}
	})
}
