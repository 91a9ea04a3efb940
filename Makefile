# make demo    the whole product on stand-ins, one address to open      make test    everything that CI tests
# make build   the binary                                               make lint    golangci-lint, pinned
# make bench   figures beside their baselines                           make demo-check   the journey in Chromium
# make policy-check   every allowed command line of the shell policy's corpus, run for real
# make edit-fuzz   a million random edits, none of which may touch what was not matched
# make github-smoke   questions to a real GitHub, with an App of your own
# make hostile-check   hostile repositories in full size: 100,000 files, 150 MB, a bomb of 300 MB
# make sandbox-faults   the thirty faults of sandboxes              make chaos   random kills while people work
# make sandbox-check   the suites of sandboxes, and what of each ran      make compat-check   toolchains in a sandbox, each for real
# make runsc       gVisor's runtime, built from its module; SANDBOX_RUNTIME=runsc runs sandbox-check, compat-check,
#                  sandbox-faults, chaos and demo under it      make runsc-check   the first of these
SHELL := /bin/bash
.DEFAULT_GOAL := build

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/agent-sandboxing
GOLANGCI_LINT := $(CACHE)/bin/golangci-lint-v2.15.0
RUNSC_VERSION := v0.0.0-20260905035102-160fafc42237
RUNSC := $(CACHE)/bin/runsc-$(RUNSC_VERSION)
# What targets need whose sandboxes are to run under gVisor.
GVISOR := $(if $(filter runsc,$(SANDBOX_RUNTIME)),runsc)
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
TEST_PACKAGES ?= ./...
TEST_FLAGS ?= -race -p 2

.PHONY: toolbox
toolbox:
	@scripts/build-toolbox

.PHONY: build
build: toolbox
	@mkdir -p bin
	go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/agent-sandboxing .
	go build -trimpath -o bin/demo ./e2e/demo

# Templates and CSS are committed, so that a build needs no Node; this makes them anew.
.PHONY: generate
generate:
	scripts/generate

.PHONY: generate-check
generate-check: generate
	git diff --exit-code -- views static

# Cuts what we use out of GitHub's own description of its API anew; the result is committed.
.PHONY: github-contract
github-contract:
	@scripts/github-contract

.PHONY: demo
demo: $(GVISOR)
	@scripts/setup demo
	@$(MAKE) --no-print-directory build
	@scripts/demo

.PHONY: demo-check
demo-check:
	@scripts/setup demo && scripts/setup browser
	@$(MAKE) --no-print-directory build
	@scripts/demo-check

.PHONY: fleet-check
fleet-check:
	@scripts/setup demo
	@$(MAKE) --no-print-directory build
	@scripts/fleet-check

.PHONY: faults-check
faults-check: $(GVISOR)
	@scripts/setup faults
	@$(MAKE) --no-print-directory build
	@scripts/faults-check

# The thirty faults of sandboxes, REPEAT times, each time on a Docker daemon of its own.
.PHONY: sandbox-faults
sandbox-faults: $(GVISOR)
	@scripts/setup faults
	@$(MAKE) --no-print-directory build
	@scripts/faults-check -sandbox -repeat $(or $(REPEAT),1)

# KILLS random SIGKILLs of worker, container, shim and dockerd while people work, spread over DURATION.
.PHONY: chaos
chaos: $(GVISOR)
	@scripts/setup faults
	@$(MAKE) --no-print-directory build
	@scripts/faults-check -chaos -duration $(or $(DURATION),5m) -kills $(or $(KILLS),200)

.PHONY: policy-check
policy-check:
	@scripts/setup test
	@scripts/policy-check

.PHONY: test
test:
	@scripts/setup test
	@scripts/test $(TEST_FLAGS) $(TEST_PACKAGES)

.PHONY: edit-fuzz
edit-fuzz:
	@set -o pipefail; go test ./agent/tools -run TestEdit_ChangesNothingOutsideTheMatch -edits 1000000 -v | grep -v '^==='

.PHONY: github-smoke
github-smoke:
	@scripts/github-smoke

.PHONY: hostile-check
hostile-check:
	@scripts/setup test
	@scripts/hostile-check

.PHONY: bench
bench:
	@scripts/setup test
	@$(MAKE) --no-print-directory build
	@scripts/bench

.PHONY: lint
lint: $(GOLANGCI_LINT)
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	@echo "Building golangci-lint (once) …"
	@mkdir -p $(CACHE)/bin
	@GOBIN=$(CACHE)/bin/tmp go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	@mv $(CACHE)/bin/tmp/golangci-lint $@

# The pinned version is checked against the Go checksum database; go.mod of this project is not touched.
.PHONY: runsc
runsc: $(RUNSC)
	@ln -sfn $(notdir $(RUNSC)) $(CACHE)/bin/runsc
	@echo $(RUNSC)

$(RUNSC):
	@echo "Building gVisor's runsc (once; some minutes) …"
	@mkdir -p $(CACHE)/bin
	@GOBIN=$(CACHE)/bin/tmp CGO_ENABLED=0 nice go install -trimpath -ldflags '-s -w -X gvisor.dev/gvisor/runsc/version.version=$(RUNSC_VERSION)' \
		gvisor.dev/gvisor/runsc@$(RUNSC_VERSION)
	@mv $(CACHE)/bin/tmp/runsc $@

.PHONY: sandbox-check
sandbox-check: $(GVISOR)
	@scripts/setup test
	@scripts/sandbox-check

.PHONY: runsc-check
runsc-check:
	@SANDBOX_RUNTIME=runsc $(MAKE) --no-print-directory sandbox-check

.PHONY: compat-check
compat-check: $(GVISOR)
	@scripts/setup test
	@scripts/compat-check

.PHONY: clean
clean:
	rm -rf bin node_modules sandbox/toolbox/dist/toolboxd-*
