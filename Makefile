# Everything runs from .venv, which is made on first use and reused afterwards.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.10 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST = $(BIN)/python -m pytest -n $(or $(JOBS),2) --dist worksteal

.PHONY: run test test-heavy test-all stress lint docs clean help

help:            ## show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

run: $(VENV)/.runtime       ## set up, then run the default job
	$(BIN)/python run.py --config configs/cluster.yaml

test: $(VENV)/.testing      ## set up, then run the tests but the heavy ones, JOBS (2) at a time
	$(PYTEST) -m "not heavy"

test-heavy: $(VENV)/.testing  ## set up, then run the heavy tests: sweeps without the JIT, NetworkX's own tests, long runs
	$(PYTEST) -m heavy
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m jitless

test-all: test test-heavy   ## every test

stress: $(VENV)/.testing    ## set up, then check every algorithm on random graphs for SECONDS (60), from SEED
	$(BIN)/python -m tests.stress --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

lint: $(VENV)/.testing      ## set up, then run the linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.audit

docs: $(VENV)/.testing      ## set up, then build the documentation site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:           ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' \
	  || { echo "Tandem needs Python 3.10 to 3.12 (MindSpore has no wheel for others). Fix: make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "python3 has no venv module. Fix: apt-get install python3-venv"; exit 2; }

$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -q -c constraints.txt -e .
	@$(BIN)/python -c 'import ctypes; ctypes.CDLL("libgomp.so.1")' 2>/dev/null \
	  || echo "note: MindSpore needs libgomp.so.1, which is not here. Fix: apt-get install libgomp1"
	@touch $@

$(VENV)/.testing: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -q -c constraints.txt -e '.[test]'
	@touch $@ $(VENV)/.runtime
