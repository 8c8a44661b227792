# Everything a developer does, and what CI does: .ci/run is `make test` and
# `make check` from a clean clone.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GOLANGCI_LINT := go tool -modfile=tools/go.mod golangci-lint

##@ Every day

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the shop with nothing installed: embedded Redis and SQLite
	go run ./cmd/seckill demo

.PHONY: build
build: ## build bin/seckill
	go build -trimpath -ldflags="-s -w" -o bin/seckill ./cmd/seckill

.PHONY: services
services: ## start private Postgres and Redis on free ports (scripts/services stop ends them)
	@scripts/services

.PHONY: test
test: services ## run all tests, Go and web, on real services; one summary at the end
	@go run ./test/testrun

.PHONY: test-short
test-short: services ## run a subset of the tests in about two minutes
	@go run ./test/testrun short

.PHONY: race
race: services ## run all Go tests with the race detector
	@go run ./test/testrun race

.PHONY: e2e
e2e: services ## run all journeys in the browser, with every page in both languages and colour schemes
	@go run ./test/testrun e2e

.PHONY: faults
faults: services ## run the tests that kill processes, in full size; a table of the faults at the end
	@go run ./test/testrun faults

.PHONY: prove
prove: services ## explore the model, compare the scripts with it, check histories of drills and of killed processes, test the tests with seeded faults; at most 20 minutes
	@set -a; . .services/env; go run ./test/prove

.PHONY: seeded
seeded: services ## put one fault at a time into a copy of the code, and show which test finds it: make seeded FAULT=release
	@set -a; . .services/env; go run ./test/seeded $(FAULT)

.PHONY: check
check: ## check what is committed: generated code, formatting, lints, layers, known vulnerabilities
	scripts/check-generated
	go vet ./...
	go -C test/bench vet ./...
	go -C test/oidcprovider vet .
	@$(MAKE) lint
	go test ./internal/archtest
	scripts/check-vulnerabilities $(VULNERABILITIES)

##@ Now and then

.PHONY: generate
generate: ## write the generated code: types of ids, ent, GraphQL, the types of the shop
	go generate ./internal/platform/id ./ent
	scripts/generate-graph
	scripts/test-web schema

.PHONY: migration
migration: services ## write the next SQL file from the change of ent's schema: make migration NAME=add_waiting_room
	@set -a; . .services/env; go run ./internal/platform/postgres/migratediff "$(NAME)"

.PHONY: picture
picture: ## draw docs/architecture.svg from its source (needs Graphviz)
	dot -Tsvg docs/architecture.dot > docs/architecture.svg
	echo "<!-- source: $$(sha256sum < docs/architecture.dot | cut -d ' ' -f 1) -->" >> docs/architecture.svg

.PHONY: fmt
fmt: ## format the Go code
	$(GOLANGCI_LINT) fmt

.PHONY: lint
lint: ## lint the Go code with the linters of .golangci.yml
	$(GOLANGCI_LINT) run
	cd test/bench && go tool -modfile=../../tools/go.mod golangci-lint run

.PHONY: bench
bench: ## measure the hot path relative to baselines in the same run
	@[ -x scripts/bench ] || { echo "scripts/bench is missing"; exit 1; }
	@scripts/bench

.PHONY: growth
growth: ## plot how throughput and latency of orders depend on stock, buyers, buyers for each unit, sales, sockets, backlog and rows, and draws on entries
	@scripts/bench --growth

.PHONY: lighthouse
lighthouse: services ## measure the shop's pages with Lighthouse (needs an idle machine)
	scripts/test-web lighthouse

.PHONY: conformance
conformance: ## run third-party protocol test suites (part of make test; needs Node 20)
	@test/conformance/run

.PHONY: attack
attack: services ## run known attacks against a server of the production profile
	@set -a; . .services/env; go test -tags attack -count=1 -timeout 15m -v ./test/attack

.PHONY: ship
ship: ## check what is shipped: image, proxies, chart, dashboard, alerts, from an empty machine to a restored backup
	@scripts/ship

.PHONY: clean
clean: ## stop the private services and remove what was built
	scripts/services stop
	rm -rf bin bench-out
