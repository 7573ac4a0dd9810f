# What a person needs to work on Maitred. Python 3.11 or newer, pip and make are enough for `make run`; `make test`
# and `make check` also take a few Debian packages (tools/parts.sh) where they are missing.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup run test check docs bench fuzz simulate soak diagrams parts lock clean

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## make .venv with the locked dependencies (quick when nothing changed)

run: $(VENV)/.runtime ## start everything on the embedded store (ARGS="--port 0 --slots 4")
	@$(BIN)/maitred up $(ARGS)

test: $(VENV)/.dev parts ## run the tests on real servers (ARGS="tests/core -k delay")
	@$(BIN)/pytest -n 3 --dist worksteal $(ARGS)

check: $(VENV)/.dev parts ## formatting, lint, types, layers and Lua
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tools/luacheck.py

docs: $(VENV)/.dev ## build the site into build/site; it needs no network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: $(VENV)/.dev ## measure beside other queues (ARGS are its options)
	@$(BIN)/python -m benchmarks $(ARGS)

fuzz: $(VENV)/.dev ## try a real server with calls made of its description, for five minutes (ARGS="--seconds 60")
	@$(BIN)/python tools/fuzz.py $(ARGS)

simulate: $(VENV)/.runtime ## play workloads on the Floor in virtual time (ARGS="--workload burst")
	@$(BIN)/python -m benchmarks simulate $(ARGS)

soak: $(VENV)/.dev parts ## run the long tests with random faults
	@$(BIN)/pytest tests -m soak -s $(ARGS)

diagrams: $(VENV)/.runtime ## draw the states in docs/ledger.md from the code
	@$(BIN)/python tools/diagrams.py

parts: ## install the Debian packages that the tests need, if they are missing
	@tools/parts.sh

lock: $(VENV)/.dev ## write the lock files anew (ARGS=--upgrade for newer versions)
	@ARGS="$(ARGS)" tools/lock.sh

clean: ## remove what was made: .venv, the peers of bench, caches and builds; data stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache benchmarks/.envs
	find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@tools/venv.sh $(VENV)

# Running needs no more than the runtime's lock; the build lock is what puts the project itself in place.
$(VENV)/.runtime: requirements.lock requirements-build.lock pyproject.toml | $(BIN)/python
	@echo "Installing the locked dependencies into $(VENV)"
	@$(PIP) --require-hashes -r requirements-build.lock -r requirements.lock
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@
