# icewright. `make demo` shows it at work, `make test` proves that it works; both set up all that they need.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
READY := $(VENV)/.ready
DEMO_ARGS ?=
PAGES := src/icewright/server/http/static/ui/index.html
PAGES_FROM := $(shell find web/src web/public -type f 2>/dev/null) $(wildcard web/*.json web/*.ts web/*.html)
TEST_ARGS ?=
# Two processes; tests/conftest.py says which takes what. WORKERS= for one.
WORKERS ?= --numprocesses=2 --dist=loadfile --no-loadscope-reorder
# Folders of pure functions and of services over doubles and SQLite; there without HTTP, commands, and long schedules of
# faults.
SLOW := acceptance adversary app benchmarks browser catalogs client contracts deploy docs e2e identity server simulation \
	spark store web __pycache__
FAST := $(filter-out $(SLOW:%=tests/%/),$(wildcard tests/*/)) \
	$(foreach name,test_api_*.py *_commands.py *_faults.py *_forests.py *_machine.py *_on_tables.py \
	*_adapter.py test_*ing_deletes.py test_merge_storage.py test_leader_lock.py test_quarantines.py test_removals.py,\
	--ignore-glob='*/$(name)')
B ?=
# What a test of a campaign may take that says nothing of it itself, in seconds.
LONG_S := 7200
# Modules are compiled once and not by each process, also where the machine says otherwise: that of a server takes seconds.
export PYTHONDONTWRITEBYTECODE :=
# Node trusts its own authorities alone; with these, those of the system as well, as uv does.
export NODE_EXTRA_CA_CERTS ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt))

.PHONY: help setup programs web web-check demo test test-fast coverage check bench campaign acceptance docs docs-serve lock clean

help: ## what there is to do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) web ## a virtual environment with everything, as locked

$(READY): requirements.lock pyproject.toml scripts/check_machine.py
	@$(PYTHON) scripts/check_machine.py
	@echo "setting up $(VENV): Python packages as locked in requirements.lock (about 1.4 GB with Spark)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13,<1'
	@$(BIN)/uv pip sync --quiet --system-certs --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --no-deps --editable .
	@touch $@

demo: $(READY) web ## the whole loop on real data: make demo DEMO_ARGS="--once --no-browser"
	@$(BIN)/icewright demo $(DEMO_ARGS)

web: ## the web pages, where npm is installed; the wheel has them
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(PAGES); \
	else echo "npm is not installed (Node 20.19 or newer): there are no web pages, and tests on them will be skipped"; fi

$(PAGES): web/node_modules/.package-lock.json $(PAGES_FROM)
	@npm --prefix web run --silent build -- --logLevel warn
	@touch $@

web/node_modules/.package-lock.json: web/package-lock.json
	@echo "setting up web/node_modules: the packages that build the web pages, as locked (280 MB)"
	@npm --prefix web ci --silent
	@touch $@

web-check: web ## style, types and tests of the sources of the web pages
	@if command -v npm >/dev/null; then npm --prefix web run --silent check && npm --prefix web test --silent; fi

programs: ## the programs that tests need and Python packages do not bring
	@$(PYTHON) scripts/install_programs.py

test: $(READY) programs web ## every test there is, and what `make check` checks beside them
	@log=$$(mktemp); { $(MAKE) --no-print-directory check >"$$log" 2>&1 || { cat "$$log"; false; }; } & \
	failed=0; $(BIN)/pytest $(WORKERS) $(TEST_ARGS) || failed=$$?; \
	wait $$! || { failed=1; echo "make check failed:"; cat "$$log"; }; \
	rm -f "$$log"; exit $$failed

test-fast: $(READY) ## what needs no Spark and no server, in a few minutes
	@$(BIN)/pytest $(WORKERS) -m "not spark and not e2e and not servers" $(FAST) $(TEST_ARGS)

coverage: $(READY) programs web ## lines and branches that every test there is runs, processes that they start included
	@$(BIN)/pytest $(WORKERS) --cov --cov-report=html:build/coverage --cov-report=term:skip-covered $(TEST_ARGS)

check: $(READY) web-check ## style, types, floors
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY) ## measure against the peer: make bench B="B7 --short"
	@$(BIN)/python -m benchmarks $(B)

campaign: $(READY) ## the long forms: 20,000 simulated lakehouses, every kill three times, a town of 10,000 tasks
	@echo "This takes some 12 hours on two idle cores: properties and simulations 8, attacks 1, kills 0.7, the town 2.2."
	@ICEWRIGHT_CAMPAIGN=1 $(BIN)/pytest -m "not e2e" --ignore=tests/adversary --timeout=$(LONG_S) $(TEST_ARGS)
	@ICEWRIGHT_CAMPAIGN=1 $(BIN)/pytest -s tests/adversary --timeout=$(LONG_S) $(TEST_ARGS)
	@ICEWRIGHT_CAMPAIGN=1 $(BIN)/pytest tests/e2e/test_kill_matrix.py tests/e2e/test_demo_e2e.py tests/acceptance/test_busy_writer.py $(TEST_ARGS)
	@ICEWRIGHT_CAMPAIGN=1 $(BIN)/pytest -s tests/acceptance/test_service.py $(TEST_ARGS)

acceptance: $(READY) ## what a user is promised, on real processes
	@ICEWRIGHT_ACCEPTANCE=1 $(BIN)/pytest -m e2e -v $(TEST_ARGS)

docs: $(READY) ## write the pages that come from the code; build the docs site, and pack it for offline use
	@$(BIN)/python -m scripts.write_reference
	@$(BIN)/python -m scripts.build_docs

docs-serve: $(READY) ## the docs site at http://localhost:8000, as the pages are edited
	@$(BIN)/python -m scripts.build_docs --serve

lock: $(READY) ## resolve the dependencies anew
	@$(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 --all-extras --group dev --group docs --generate-hashes \
		--no-header --no-emit-index-url --upgrade pyproject.toml --output-file requirements.lock

clean: ## remove what the targets made
	rm -rf $(VENV) web/node_modules $(dir $(PAGES)) icewright-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* build dist
