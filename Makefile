# Everything a developer does, and what CI does: .ci/run is `make test` and
# `make check` from a clean clone.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GOLANGCI_LINT := go tool -modfile=tools/go.mod golangci-lint

# Two cores compile and run all tests in minutes if nothing is done twice: vet is
# part of `make check`, and nobody looks at a test binary with a debugger here.
# The race detector needs a C compiler; without one the tests run without it. It
# watches our code and whatever runs beside it, not packages that only compute:
# SQLite, password hashes and pictures are many times as slow under its eyes. Such a
# package must use no generic type that has atomics (sync.Map): the linker may take
# its unwatched copy for everybody's. What its own atomics guard is its own memory.
TEST_FLAGS := -vet=off -ldflags=-w -timeout 30m
UNWATCHED := modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory golang.org/x/crypto/argon2 golang.org/x/crypto/blake2b \
	github.com/golang/freetype/... image/... compress/...
LONGEST := ./test/conformance ./internal/stream ./internal/payment # begin first, so that none is left alone at the end
RACE := $(if $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v "$$(go env CC)"),-race $(UNWATCHED:%=-gcflags=%=-race=false))

##@ Every day

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the shop with nothing installed: embedded Redis and SQLite
	go run ./cmd/seckill demo

.PHONY: build
build: ## build bin/seckill
	go build -trimpath -o bin/seckill ./cmd/seckill

.PHONY: services
services: ## start private Postgres and Redis on free ports (scripts/services stop ends them)
	@scripts/services

.PHONY: test
test: services ## run all tests, Go and web, on real services
	@[ -n "$(RACE)" ] || echo "no C compiler here: tests run without the race detector"
	go build $(RACE) ./...
	go test $(RACE) $(TEST_FLAGS) -p 3 $(LONGEST) $$(go list ./... | grep -vxF seckill/internal/app)
	go test $(RACE) $(TEST_FLAGS) -parallel 4 ./internal/app # whole sites: they wait more than they work
	@if [ -x scripts/test-web ]; then scripts/test-web; fi

.PHONY: check
check: ## check what is committed: generated code, formatting, lints, layers
	scripts/check-generated
	go vet ./...
	@$(MAKE) lint
	go test ./internal/archtest
	@if [ -x scripts/check-web ]; then scripts/check-web; fi

##@ Now and then

.PHONY: generate
generate: ## write generated code anew: ent, GraphQL
	go generate ./ent
	scripts/generate-graph

.PHONY: migration
migration: services ## write the next SQL file from the change of ent's schema: make migration NAME=add_waiting_room
	@set -a; . .services/env; go run ./internal/postgres/migratediff "$(NAME)"

.PHONY: fmt
fmt: ## format the Go code
	$(GOLANGCI_LINT) fmt

.PHONY: lint
lint: ## lint the Go code by the closed list of .golangci.yml
	$(GOLANGCI_LINT) run

.PHONY: bench
bench: ## measure the ratios of the hot path against floors of the same run
	@[ -x scripts/bench ] || { echo "scripts/bench is missing"; exit 1; }
	@scripts/bench

.PHONY: lighthouse
lighthouse: services ## let Lighthouse judge the shop's pages (wants an idle machine)
	scripts/test-web lighthouse

.PHONY: conformance
conformance: ## run the protocol suites of others (part of make test; needs Node 20)
	@test/conformance/run

.PHONY: clean
clean: ## stop the private services and remove what was built
	scripts/services stop
	rm -rf bin bench-out
