# Everything a developer or CI runs. A target makes its environment first: `make demo` works on a fresh checkout
# with Python >= 3.11 and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check # -qq: errors only

# Seconds that `make fuzz` may search, shared out among the properties.
FUZZ_SECONDS ?= 120
# What it searches: every property, or FUZZ=fuzz for the long searches alone.
FUZZ ?= fuzz or hypothesis
# Further options for pytest (ARGS="-k native -x") and for uv (LOCK_ARGS=--upgrade).
ARGS ?=
LOCK_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help env demo test check format bench bench-smoke fuzz lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

env: $(STAMP) ## make .venv: the locked dependencies and this checkout
	@:

# Made anew whenever the lock or the project's metadata changes, so that no leftover of an older lock hides a missing
# dependency. Two steps, because pip checks hashes for a whole command or not at all, and a checkout has none: first the
# lock, every file against its hash; then the checkout, which may fetch nothing (its build backend is in the lock).
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("streamparse needs Python 3.11 or newer, and \
	$(PYTHON) is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.11 ...")'
	@echo "making $(VENV) (once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes -r constraints.txt
	@$(PIP) install --no-index --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP) ## decode bundled recordings in the live view; then the recovery check
	@$(BIN)/python -m streamparse demo

test: $(STAMP) ## run the tests
	$(BIN)/python -m pytest $(ARGS)

check: $(STAMP) ## lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## rewrite the sources as `make check` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A benchmark may take minutes; the time limit of a test does not hold for it.
bench: $(STAMP) ## run every benchmark
	$(BIN)/python -m pytest benchmarks -m "" --timeout=0 $(ARGS)
	$(BIN)/python -m benchmarks.bench_arguments

bench-smoke: $(STAMP) ## run each quick benchmark once, without measuring
	$(BIN)/python -m pytest benchmarks --benchmark-disable $(ARGS)

# "hypothesis" is the mark that hypothesis puts on each of its tests.
fuzz: $(STAMP) ## search all properties for FUZZ_SECONDS (default 120)
	HYPOTHESIS_PROFILE=fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -m "$(FUZZ)" \
	    --timeout=$$(( $(FUZZ_SECONDS) + 300 )) $(ARGS)

# uv resolves for all platforms at once, and writes the hash of every file of a release, and no address.
lock: ## write constraints.txt anew (LOCK_ARGS=--upgrade: with the newest releases)
	@$(PYTHON) -m venv --clear .lock-venv
	@.lock-venv/bin/python -m pip -qq --disable-pip-version-check install "uv>=0.5"
	.lock-venv/bin/uv --no-config pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --all-extras --group dev --custom-compile-command "make lock" $(LOCK_ARGS) -o constraints.txt pyproject.toml
	@rm -rf .lock-venv

clean: ## remove everything that can be made again
	rm -rf $(VENV) .lock-venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
