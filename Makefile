# One command for each thing one does here. Every target sets itself up from nothing.
# PYTHON=python3.12 chooses the interpreter; ARGS="-k lease" is handed to pytest.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: run test check format bench prove clean help

run: $(READY) ## start `headway up` on the demo app and watch jobs being done
	$(BIN)/headway up --app headway.demo:app --log-level warning

test: $(READY) ## start the real servers and run all tests
	tools/servers
	$(BIN)/pytest $(ARGS)

check: $(READY) ## formatting, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

format: $(READY) ## let ruff format and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## measure what the README claims
	$(BIN)/headway bench

prove: $(READY) ## the long proofs, with their figures
	tools/servers
	$(BIN)/pytest -m prove -s --timeout=0 $(ARGS)

clean: ## remove everything that the other targets made
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	tools/venv $(PYTHON)
	@touch $@
