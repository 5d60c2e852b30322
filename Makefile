# Adjutant. `make help` lists what there is; everything else is in scripts/ and xtask/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Outside the checkout, so that a fresh clone starts warm and the tree stays small.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/adjutant-target

# Arguments for the server: make run ARGS="--listen 127.0.0.1:9000"
ARGS ?=
# How long the chaos lasts.
MINUTES ?= 30

.PHONY: help run test test-long test-real chaos check bench ui openapi fmt clean
.PHONY: ui-packages check-fmt check-clippy check-tidy check-deny check-ui

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

run: ui ## build the server and the page, start it and open the browser
	cargo build -p adjutant
	exec "$(CARGO_TARGET_DIR)/debug/adjutant" serve --open $(ARGS)

test: ## everything a change must pass; installs what is missing (about 25 minutes from nothing)
	@scripts/test

test-long: ## the slow rest: all tests in release, half an hour of chaos, the API fuzzed, every screen measured, mutants of the core
	@scripts/test-long

test-real: ## whole runs with a small real model, directly and through a LiteLLM proxy; fetches Python packages once
	@scripts/test-real

chaos: ## three nodes on a PostgreSQL that is treated badly, for MINUTES (30), with a table at the end
	ADJUTANT_CHAOS_MINUTES=$(MINUTES) scripts/with-postgres cargo test -p adjutant --features faults --test cluster chaos -- --nocapture

check: check-fmt check-clippy check-tidy check-deny check-ui ## formatting, lints, house rules, licences, types

bench: ## measure, beside a temporary PostgreSQL
	scripts/with-postgres cargo run --quiet -p xtask -- bench

ui: ## build the page into ui/dist, if Node.js is here and something changed
	@if scripts/have-node; then $(MAKE) --no-print-directory ui/dist/index.html; \
	else echo "ui: skipped, because Node.js 20.19 or newer is missing; the server will say that its page is not built"; fi

openapi: ## write down the API as the code has it, in docs/openapi.json
	cargo run --quiet -p adjutant -- openapi > docs/openapi.json.new
	mv docs/openapi.json.new docs/openapi.json

fmt: ## format the Rust sources
	cargo fmt --all

clean: ## delete what was built
	cargo clean
	rm -rf ui/dist ui/node_modules

check-fmt:
	cargo fmt --all --check

check-clippy:
	cargo clippy --quiet --workspace --all-targets --features adjutant/faults -- -D warnings

check-tidy:
	cargo run --quiet -p xtask -- tidy

check-deny:
	@scripts/check-deny

check-ui:
	@if scripts/have-node; then $(MAKE) --no-print-directory --silent ui-packages && npm --prefix ui run --silent check; \
	else echo "check-ui: skipped, because Node.js 20.19 or newer is missing"; fi

ui-packages: ui/node_modules/.package-lock.json

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json ui/.npmrc
	npm --prefix ui ci --no-progress --loglevel=error
	@touch $@

# Folders are listed too, so that a deleted file counts as a change.
ui/dist/index.html: ui/node_modules/.package-lock.json ui/index.html ui/vite.config.ts ui/compress.ts ui/size-limit.ts ui/tsconfig.json $(shell find ui/src ui/public 2>/dev/null)
	npm --prefix ui run --silent build
	@touch $@
