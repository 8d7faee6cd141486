# Everything that is built, run and tested here. `make` alone lists it.

GO      ?= go
BIN     := bin/mortise
DOCREAD := internal/service/extract/bin/docread.gz
CAGE    := internal/runtime/sandbox/bin/cage
PCAPSUM := plugins/network_forensics/pcap_metadata_summary/bin/pcapsum
HOME_DIR := $(CURDIR)/.mortise
LOG     ?= $(firstword $(wildcard /var/log/dpkg.log /var/log/syslog /var/log/messages /var/log/pacman.log /var/log/dnf.log /var/log/install.log))
# What the host is made of and others wrote: it is compiled beside the programs that the host carries, which
# are linked one by one.
OTHERS = $(shell $(GO) list -deps -tags grpcnotrace -f '{{with .Module}}{{if not .Main}}{{$$.ImportPath}}{{end}}{{end}}' ./cmd/mortise)
# Programs and tests are compiled with the same flags (as in cmd/dist), so that nothing is compiled twice.
# Programs are linked without tables for debuggers, so the compiler writes none.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -buildvcs=false -tags=grpcnotrace -gcflags=all=-dwarf=false)
# A compiler process lives for seconds and spends a quarter of them on garbage collection. It collects no
# garbage below this size.
GOMEMLIMIT ?= 1500MiB
COMPILE := CGO_ENABLED=0 GOGC=off GOMEMLIMIT=$(GOMEMLIMIT) $(GO) build
# A file that is the same keeps its time: results of tests that read it stay cached.
INSTALL := install -C -m 755
LISTEN  ?= 127.0.0.1:8080
TARGETS ?=
PKG     ?=
SUITE    = CGO_ENABLED=0 $(GO) run ./test/suite $(if $(PART),-part=$(PART)) $(if $(JSON),-json) $(if $(FRESH),-fresh) $(if $(LIST),-list)

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z][a-z\/-]*:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/mortise, with the programs that it carries, and the plugin in Go
	@$(COMPILE) -ldflags="-s -w -buildid=" -o bin/made/ \
		./cmd/cage ./cmd/docread ./cmd/pack ./cmd/pcapsum ./plugins/outreach/write_outcome $(OTHERS)
	mkdir -p $(dir $(PCAPSUM))
	$(INSTALL) bin/made/cage $(CAGE)
	$(INSTALL) bin/made/pcapsum $(PCAPSUM)
	$(INSTALL) bin/made/write_outcome plugins/outreach/write_outcome/write_outcome
	bin/made/pack bin/made/docread $(DOCREAD) $(PCAPSUM) plugins/bin/pcapsum.gz
	$(COMPILE) -ldflags="-s -w" -o bin/made/mortise ./cmd/mortise
	$(INSTALL) bin/made/mortise $(BIN)

.PHONY: dist
dist: ## write a release to dist: archives, bundles for Claude Desktop, the plugin for Claude Code, their sums
	rm -rf dist
	$(GO) run ./cmd/dist -o dist -targets "$(TARGETS)"

.PHONY: run
run: build ## serve on a free port, and mine a real log of this machine, or LOG=path, through the API
	@MORTISE=$(BIN) MORTISE_HOME=$(HOME_DIR) sh docs/tour.sh "$(LOG)"

.PHONY: serve
serve: build ## serve the data of `make run` on 127.0.0.1:8080, or LISTEN=address, until Ctrl-C
	@MORTISE_HOME=$(HOME_DIR) $(BIN) serve --listen $(LISTEN)

.PHONY: test
test: ## run what every change has to pass; PART=name runs one part, JSON=1 prints JSON, FRESH=1 ignores cached results
	@$(SUITE)

.PHONY: test-race
test-race: ## run the packages that own concurrency with the race detector
	@$(SUITE) -set race

.PHONY: test-long
test-long: ## run campaigns, measurements, fuzzers and benchmarks (hours); PART=name runs one, LIST=1 names them
	@$(SUITE) -set long

.PHONY: check
check: ## run format, vet, tests and staticcheck of changed packages and their importers; PKG=./path names packages
	@$(SUITE) -set check $(PKG)

.PHONY: bench-check
bench-check: ## hold allocations, bytes and ratios of benchmarks against test/speed/baseline.txt
	$(GO) run ./test/speed

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	cd bench && $(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

.PHONY: structure
structure: ## print the measures of the code's structure beside their goals
	@$(GO) run ./test/structure

.PHONY: bench
bench: build ## run the benchmarks beside their peers; takes some minutes
	cd bench && $(GO) run .

.PHONY: generate
generate: ## write what is derived from protocol/codes.json
	$(GO) generate ./...

.PHONY: verify
verify: generate ## fail if generate changes a file
	git diff --exit-code

.PHONY: clean
clean: ## remove what was built, and the data of `make run`
	rm -rf bin dist .mortise $(CAGE) $(DOCREAD) $(PCAPSUM) plugins/bin/pcapsum.gz
