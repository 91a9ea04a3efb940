# make demo    the whole product on stand-ins, one address to open      make test    everything that CI tests
# make build   the binary                                               make lint    golangci-lint, pinned
# make bench   figures beside their baselines                           make demo-check   the journey in Chromium
# make edit-fuzz   a million random edits, none of which may touch what was not matched
SHELL := /bin/bash
.DEFAULT_GOAL := build
.PHONY: github-contract build generate generate-check demo demo-check fleet-check faults-check test edit-fuzz lint bench clean toolbox

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/agent-sandboxing
GOLANGCI_LINT := $(CACHE)/bin/golangci-lint-v2.15.0
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
TEST_PACKAGES ?= ./...
TEST_FLAGS ?= -race -p 2

toolbox:
	@scripts/build-toolbox

build: toolbox
	@mkdir -p bin
	go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/agent-sandboxing .
	go build -trimpath -o bin/demo ./e2e/demo

# Templates and CSS are committed, so that a build needs no Node; this makes them anew.
generate:
	scripts/generate

generate-check: generate
	git diff --exit-code -- views static

# Cuts what we use out of GitHub's own description of its API anew; the result is committed.
github-contract:
	@scripts/github-contract

demo:
	@scripts/setup demo
	@$(MAKE) --no-print-directory build
	@scripts/demo

demo-check:
	@scripts/setup demo && scripts/setup browser
	@$(MAKE) --no-print-directory build
	@scripts/demo-check

fleet-check:
	@scripts/setup demo
	@$(MAKE) --no-print-directory build
	@scripts/fleet-check

faults-check:
	@scripts/setup demo
	@$(MAKE) --no-print-directory build
	@scripts/faults-check

test:
	@scripts/setup test
	@scripts/test $(TEST_FLAGS) $(TEST_PACKAGES)

edit-fuzz:
	@set -o pipefail; go test ./agent/tools -run TestEdit_ChangesNothingOutsideTheMatch -edits 1000000 -v | grep -v '^==='

bench:
	@scripts/setup test
	@$(MAKE) --no-print-directory build
	@scripts/bench

lint: $(GOLANGCI_LINT)
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	@echo "Building golangci-lint (once) …"
	@mkdir -p $(CACHE)/bin
	@GOBIN=$(CACHE)/bin/tmp go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	@mv $(CACHE)/bin/tmp/golangci-lint $@

clean:
	rm -rf bin node_modules sandbox/toolbox/dist/toolboxd-*
