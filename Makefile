# A fresh machine needs two commands: `make demo` and `make test`. Everything they need is set up on the way.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: help setup demo test check bench format lock clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .cache/bench-venv
UV := $(shell command -v uv 2>/dev/null || echo .cache/bootstrap/bin/uv)
export UV_PYTHON_DOWNLOADS := never

help: ## Say what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.cache/bootstrap/bin/uv:
	@$(PYTHON) -m pip --version >/dev/null || { echo "$(PYTHON) has no pip: install python3-pip"; exit 1; }
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes \
		--target .cache/bootstrap -r requirements/bootstrap.txt

$(VENV)/.base: requirements/base.txt requirements/build.txt pyproject.toml | $(filter .cache/%,$(UV))
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/base.txt requirements/build.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/.dev
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(filter .cache/%,$(UV))
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(VENV)/.base $@

# What the benchmarks compare with lives apart: it is no part of the product.
$(PEERS)/.peers: requirements/bench.txt | $(filter .cache/%,$(UV))
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(PEERS)
	$(UV) pip sync --quiet --python $(PEERS)/bin/python --require-hashes requirements/bench.txt
	@touch $@

setup: $(VENV)/.base ## Install the product into .venv (leaves .venv/bin/affidavit)

demo: setup ## Ask a real Electron application a question, with evidence
	$(BIN)/affidavit demo

test: $(VENV)/.dev ## Run all tests
	@tests/setup-system
	$(BIN)/python -m pytest -n 2 --dist worksteal $(TESTS)

check: $(VENV)/.dev ## Format, lint, types, imports, sizes, docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -q tests/project

bench: $(VENV)/.dev ## Ratios, side by side in one run
	@$(MAKE) --no-print-directory $(PEERS)/.peers || echo "the Python peers cannot be installed; they are left out"
	$(BIN)/python -m benchmarks $(BENCHMARKS)

format: $(VENV)/.dev ## Rewrite files in the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: | $(filter .cache/%,$(UV)) ## Pin requirements again, with hashes
	printf 'hatchling==1.33.0\neditables>=0.5\n' | $(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 \
		--no-emit-index-url --no-annotate --no-header - -o requirements/build.txt
	$(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-annotate \
		--no-header pyproject.toml -o requirements/base.txt
	$(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-annotate \
		--no-header pyproject.toml --group dev -o requirements/dev.txt
	$(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-annotate \
		--no-header pyproject.toml --group bench -o requirements/bench.txt

clean: ## Remove what was built
	rm -rf $(VENV) .cache dist build
