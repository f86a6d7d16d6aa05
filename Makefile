# Needs Python 3.11 or newer, make and git; everything else is installed into .venv from the lock
# files. `make` alone runs everything that CI runs.
SHELL := /bin/sh
.SUFFIXES:
.DEFAULT_GOAL := check

# Some machines set this; it would have every start of amux compile every module again.
unexport PYTHONDONTWRITEBYTECODE
# Installing reads nothing but the lock files and the package index of this machine.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 2
TESTS ?=
BENCH ?=
DOCS := README.md docs/*.md

.PHONY: run stop test check fix bench pyz peers agents lint types imports docs lock clean

run: .venv/installed  ## Switch memory on in ./.run/amux, start the Hub, show how to connect
	@sh scripts/run.sh

stop: .venv/installed  ## Stop the Hub that `make run` started
	@AMUX_HOME="$$(pwd)/.run/amux" $(BIN)/amux hub stop

test: .venv/installed-dev  ## Run the tests that are not slow
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not slow" $(TESTS)

check: lint types imports docs peers agents .venv/installed-dev  ## Do everything that CI does
	$(PYTEST) -n $(WORKERS) --dist worksteal $(TESTS)

lint: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/installed-dev
	$(BIN)/mypy

imports: .venv/installed-dev
	$(BIN)/lint-imports

docs: .venv/installed-dev
	$(BIN)/cog --check -P -I . $(DOCS)

fix: .venv/installed-dev  ## Format, fix what can be fixed, write the generated parts of the pages
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/cog -r -P -I . $(DOCS)

bench: .venv/installed-dev  ## Measure, and compare with the budgets
	$(BIN)/python -m pip install -q --only-binary :all: --require-hashes -r bench/requirements.lock
	$(BIN)/python -m bench $(BENCH)

pyz: .venv/installed  ## Build amux.pyz: the agent's side in one file, standard library only
	$(BIN)/python -m scripts.pyz amux.pyz

peers: tests/peers/node_modules/.node  ## Install the official clients that tests/peers talks to

tests/peers/node_modules/.node: tests/peers/package-lock.json tests/peers/requirements.lock \
		scripts/peers.sh | .venv/installed-dev
	@sh scripts/peers.sh

agents: tests/agents/node_modules/.installed  ## Install the real agents that tests/agents starts

tests/agents/node_modules/.installed: tests/agents/package-lock.json tests/agents/requirements.lock \
		scripts/agents.sh | .venv/installed-dev
	@sh scripts/agents.sh

lock: .venv/installed-dev  ## Choose versions anew and write the lock files
	@sh scripts/lock.sh

clean:  ## Remove what was built; .run/ holds documents and stays
	rm -rf .venv tests/peers/node_modules tests/agents/node_modules tests/agents/.venv build dist amux.pyz .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# --- the environment ----------------------------------------------------------------------

.venv/bin/python:
	@sh scripts/venv.sh

# The stamps make a repeated call cheap; the project itself is installed in place.
.venv/installed: requirements.lock pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

.venv/installed-dev: requirements-dev.lock pyproject.toml .venv/installed | .venv/bin/python
	$(BIN)/python -m pip install -q --require-hashes -r requirements-dev.lock
	@touch $@
