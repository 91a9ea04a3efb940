package bashpolicy

import (
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// Policy open lets everything through but what is the platform's, however it is written out.
func TestCheck_Open(t *testing.T) {
	t.Parallel()
	tests := []struct{ command, rule string }{
		{`git --config-env a=b push`, "git_not_allowed"},
		{`git --exec-path x push`, "git_not_allowed"},
		{`git --attr-source x push`, "git_not_allowed"},
		{`git config alias.p push`, "git_not_allowed"},
		{`git config remote.origin.url x`, "git_not_allowed"},
		{`git config core.hooksPath x`, "git_not_allowed"},
		{`git config --global user.name x`, ""},
		{`git config --get remote.origin.url`, ""},
		{`git submodule foreach 'git push'`, "git_not_allowed"},
		{`git submodule update --init`, ""},
		{`git subtree push x`, "git_not_allowed"},
		{`git lfs push origin`, "git_not_allowed"},
		{`git read-tree -u --reset HEAD`, "git_not_allowed"},
		{`cd .. && rm -rf repo`, "workspace_deletion"},
		{`cd /workspace && rm -rf repo`, "workspace_deletion"},
		{`cd /workspace && rm -rf *`, "workspace_deletion"},
		{`cd / && rm -rf workspace`, "workspace_deletion"},
		{`pushd .. && rm -rf repo`, "workspace_deletion"},
		{`cd / && git push`, "git_not_allowed"},
		{`cd src && make && cd .. && rm -rf build`, ""},
		{`cd src; cd ../..; rm -rf repo`, "workspace_deletion"},
		{`(cd .. && ls); rm -rf build`, ""},
		{`(cd .. && rm -rf repo)`, "workspace_deletion"},
		{`for d in a b; do cd ..; done; rm -rf repo`, "workspace_deletion"},
		{`rm -rf {*,.*}`, "workspace_deletion"},
		{`rm -rf {,.}*`, "workspace_deletion"},
		{`rm -rf {dist,build}`, ""},
		{"rm -rf " + strings.Repeat("{a,b,c,d}", 900), ""},
		{"rm -rf {1..999999999}", ""},
		{"rm -rf . {1..999999999}", "workspace_deletion"},
		{`rm -rf "$(pwd)"`, "workspace_deletion"},
		{`rm -rf $(pwd)/*`, "workspace_deletion"},
		{`rm -rf "$(pwd)/dist"`, ""},
		{"rm -rf `pwd`", "workspace_deletion"},
		{`rm -rf ${PWD:?}/*`, "workspace_deletion"},
		{`rm -rf "${PWD:?}/dist"`, ""},
		{`rm -rf [a-z]*`, "workspace_deletion"},
		{`find . -exec rm -rf {} +`, "workspace_deletion"},
		{`find . -mindepth 1 -exec rm -rf {} \;`, "workspace_deletion"},
		{`find . -name '*.o' -exec rm {} +`, ""},
		{`find . -name '*' -delete`, "workspace_deletion"},
		{`find . -print -delete`, "workspace_deletion"},
		{`find dist -delete`, ""},
		{`find . -type f -exec mv {} /tmp \;`, "workspace_deletion"},
		{`npx rimraf .`, "workspace_deletion"},
		{`npx rimraf dist`, ""},
		{`rimraf *`, "workspace_deletion"},
		{`mv * /tmp`, "workspace_deletion"},
		{`mv "$PWD" /tmp/x`, "workspace_deletion"},
		{`mv a b`, ""},
		{`env -S 'git push'`, "git_not_allowed"},
		{`env -S'git push'`, "git_not_allowed"},
		{`busybox sh -c 'git push'`, "git_not_allowed"},
		{`flock x git push`, "git_not_allowed"},
		{`watch git push`, "git_not_allowed"},
		{`ash -c 'git push'`, "git_not_allowed"},
		{`bash -c -- 'git push'`, "git_not_allowed"},
		{`npx husky install`, "git_not_allowed"},
		{`git log`, ""},
		{`cd x && git status`, ""},
	}
	for _, test := range tests {
		got := ""
		if _, r := Check(core.PolicyOpen, test.command); r != nil {
			got = r.Rule
		}
		if got != test.rule {
			t.Errorf("%q gives %q, want %q", test.command, got, test.rule)
		}
	}
}
