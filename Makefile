# Everything a change must pass is `make check`; it is what CI runs.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BIN     := bin

.PHONY: help build check fmt lint test race cover generate vectors fuzz bench conformance crash clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: ## build bin/ayegate, static and stripped
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/ayegate ./cmd/ayegate

check: fmt generate lint race ## everything a change must pass

fmt: tools ## fail when gofumpt would change a file
	@out=$$($(TOOLS)/gofumpt -l $$(git ls-files '*.go' | grep -v _templ.go)); \
	if [ -n "$$out" ]; then echo "gofumpt would change:"; echo "$$out"; exit 1; fi

lint: tools ## golangci-lint with the reasons in .golangci.yml
	$(TOOLS)/golangci-lint run

test: ## the tests, as in the README
	$(GO) test ./...

race: ## the tests with the race detector, in random order
	$(GO) test -race -shuffle=on ./...

cover: ## statement coverage of the packages where every branch counts
	$(GO) test -cover ./internal/strictjson ./internal/call ./internal/policy ./internal/approval ./internal/ledger

generate: tools ## regenerate pages and documents; fail when that changes a file
	$(TOOLS)/templ generate -log-level error ./internal/web
	AYEGATE_WRITE_DOCS=1 $(GO) test -count=1 -run 'TestDocs' ./...
	git diff --exit-code -- internal/web docs

fuzz: ## every fuzz target for 30 seconds
	sh scripts/fuzz.sh 30s

bench: ## the table of ratios: direct, plain proxy, yardstick, ayegate, in one run
	$(GO) run ./bench

conformance: build ## the public MCP conformance suite, direct and through ayegate
	sh scripts/conformance.sh

crash: ## kill -9 at every labelled point and at random, thousands of times
	$(GO) test -count=1 -timeout 60m -run 'TestCrash' ./cmd/ayegate ./internal/store/sqlite -args -kills=2000

# Tools are pinned here and installed beside the repository's own binaries.
TOOLS := $(BIN)/tools
GOFUMPT      := mvdan.cc/gofumpt@v0.12.0
GOLANGCILINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
TEMPL        := github.com/a-h/templ/cmd/templ@v0.3.1001

.PHONY: tools
tools: $(TOOLS)/gofumpt $(TOOLS)/golangci-lint $(TOOLS)/templ
$(TOOLS)/gofumpt:
	GOBIN=$(abspath $(TOOLS)) $(GO) install $(GOFUMPT)
$(TOOLS)/golangci-lint:
	GOBIN=$(abspath $(TOOLS)) $(GO) install $(GOLANGCILINT)
$(TOOLS)/templ:
	GOBIN=$(abspath $(TOOLS)) $(GO) install $(TEMPL)

clean: ## remove what was built
	rm -rf $(BIN)
