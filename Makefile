# Needs Python 3.11 or newer, pip and make. Everything is installed into .venv and nowhere else.
PYTHON ?= python3
VENV   := .venv
LOWEST := .venv-lowest
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
TYPED  := src tests $(foreach dir,bench examples scripts,$(if $(wildcard $(dir)/*.py $(dir)/*/*.py),$(dir)))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-all test-lowest test-postgres lint format docs bench bench-utility bench-peers mutants build clean

help:  ## show this list
	@echo "make TARGET, where TARGET is one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/.dev  ## create .venv with everything that development needs (about a minute)

demo: $(VENV)/.runtime  ## install the package alone and run its demonstration
	$(BIN)/attrpriv demo

test: $(VENV)/.dev  ## run the tests, except the slow ones
	$(BIN)/python -m pytest -n 2

test-all: $(VENV)/.dev  ## run all tests, the slow ones too
	$(BIN)/python -m pytest -n 2 -m "slow or not slow"

test-lowest: $(LOWEST)/.test  ## run the tests, except the slow ones, with the oldest versions of all dependencies
	$(LOWEST)/bin/python -m pytest -n 2 -W ignore::DeprecationWarning -W ignore::FutureWarning

test-postgres: $(VENV)/.dev  ## run the ledger's and the engines' tests on a private PostgreSQL server, where one is installed
	$(BIN)/python scripts/with_postgres.py $(BIN)/python -m pytest -n 2 tests/unit/accounting tests/end_to_end/test_crash.py \
	    tests/engines/test_suite.py tests/engines/test_releases.py tests/engines/test_names.py \
	    tests/engines/test_reference_view.py

lint: $(VENV)/.dev  ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(TYPED)

format: $(VENV)/.dev  ## format the code and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev  ## build the documentation site into build/site, offline and strictly
	$(BIN)/python scripts/docs_site.py

bench: $(VENV)/.dev  ## run every benchmark in bench/
	@for f in bench/*.py; do \
	    [ -e "$$f" ] || { echo "bench/ holds no benchmark"; exit 0; }; \
	    echo "== $$f"; PYTHONPATH=. $(BIN)/python "$$f" || exit 1; \
	done

bench-utility: $(VENV)/.dev  ## measure the error of every mechanism on a suite of problems, for the documentation
	$(BIN)/python bench/utility.py --full --write

bench-peers: $(VENV)/.dev  ## compare with published results and other libraries, for the documentation (half an hour; resumes)
	$(BIN)/python -m bench.peers $(PEERS)

mutants: $(VENV)/.dev  ## plant 200 small mistakes in the code that guarantees rest on, and see how many the tests find (an hour)
	$(BIN)/python -m scripts.mutants $(MUTANTS)

build: $(VENV)/.dev  ## build the wheel into dist/
	$(BIN)/python -m build --wheel --outdir dist

clean:  ## remove .venv and everything else that was made here
	rm -rf $(VENV) $(LOWEST) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "attrpriv needs Python 3.11 or newer; try: make PYTHON=python3.11"; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing attrpriv into $(VENV)"
	@$(PIP) install -q -e . -c constraints.txt
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing attrpriv and the development tools into $(VENV)"
	@$(PIP) install -q -e ".[dev,plots,polars,networks,studio]" -c constraints.txt
	@touch $@ $(VENV)/.runtime

# Warnings of versions that are years old say nothing about this project.
$(LOWEST)/.test: pyproject.toml constraints-lowest.txt
	@echo "installing the oldest versions into $(LOWEST)"
	@$(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check install -q -e ".[test]" -c constraints-lowest.txt
	@touch $@
