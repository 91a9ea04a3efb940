package bashpolicy

import (
	"slices"
	"strings"

	"agent-sandboxing/core"
)

const (
	seed     = core.PolicySeed
	build    = core.PolicyBuild
	readonly = core.PolicyReadonly
)

// seedNames are the 63 commands of policy seed.
var seedNames = strings.Fields(`
	cd ls cat head tail wc echo printf grep find sort uniq cut tr sed awk git node npm npx
	cp mv rm mkdir touch chmod chown tee diff cmp file stat du df env pwd which type sh bash
	true false exit sleep time date dirname basename realpath readlink tar gzip gunzip unzip
	python python3 pip uv pnpm yarn rg jq test`)

// platformName is the platform's own command, which every policy knows besides those.
const platformName = "ready"

// buildNames are what policy build adds: toolchains and test runners.
var buildNames = append(strings.Fields(`
	go gofmt cargo rustc rustfmt java javac mvn gradle ruby bundle rake php composer make cmake
	tsc eslint prettier deno bun`), testRunners...)

// packagedTools are toolchain programs that packages of a project bring and that run no tests.
var packagedTools = strings.Fields(`tsc eslint prettier`)

// readonlyNames only look.
var readonlyNames = strings.Fields(`
	cd ls cat head tail wc echo printf grep find sort uniq cut tr sed awk git diff cmp file stat du df
	env pwd which type true false exit sleep time date dirname basename realpath readlink rg jq test`)

// testRunners are programs that run tests, by the name of their executable or package.
var testRunners = strings.Fields(`
	jest vitest mocha ava tap tape jasmine karma playwright cypress nyc c8 coverage qunit wtr web-test-runner
	uvu lab tsd wdio testcafe nightwatch cucumber cucumber-js bats
	pytest py.test nose nose2 nosetests tox nox unittest doctest behave robot
	phpunit pest rspec minitest ctest gotestsum
	ts-mocha electron-mocha test-runner test-storybook stryker stryker-mutator poku borp trial`)

// writers change the files that they are given.
var writers = strings.Fields(`cp mv rm mkdir touch chmod chown tee cd tar gzip gunzip unzip uniq sort`)

func allowedName(p core.BashPolicy, name string) bool {
	if name == platformName {
		return true
	}
	switch p {
	case core.PolicySeed:
		return slices.Contains(seedNames, name)
	case core.PolicyBuild:
		return slices.Contains(seedNames, name) || slices.Contains(buildNames, name)
	case core.PolicyReadonly:
		return slices.Contains(readonlyNames, name)
	case core.PolicyOpen:
		return true
	}
	return false
}

// refuseName says what to use in place of a command that is not allowed.
func refuseName(p core.BashPolicy, name string) *Refusal {
	if p == seed && slices.Contains(testRunners, name) {
		return testRunner()
	}
	hint := "Use another command, or one of the file tools."
	switch name {
	case "eval", "exec", "source", ".", "command", "builtin", "xargs", "timeout", "nohup", "parallel":
		hint = "Run the command itself; give the tool's timeout to bound it."
	case "curl", "wget", "ssh", "scp", "nc":
		hint = "Nothing may be fetched by hand. Install packages with npm, pip or uv."
	case "make", "go", "cargo", "mvn", "gradle", "cmake", "rustc", "javac":
		hint = "Toolchains need the policy build. Say in your report what was not built."
	case "sudo", "su", "docker", "kill", "pkill":
		hint = "It is not needed here: every command runs alone and is ended when it is over."
	case "vi", "vim", "nano", "ed", "patch":
		hint = "Change files with the edit tool."
	case "perl", "ruby", "php":
		hint = "Write a script for node or python3 and run that file."
	case "ln":
		hint = "Links are not made here. Copy the file with cp."
	}
	return refuse("command_not_allowed", name+" is not among the allowed commands. "+hint)
}

func testRunner() *Refusal {
	return refuse("test_runner_not_allowed", "Tests may not be run under this policy. Check the change by reading it, or with a build or a linter, and say in the report that tests were not run.")
}
