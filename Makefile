# `make setup` builds .venv from the lock; every other target calls it first. Nothing outside the clone is needed
# but python3 (3.11 or newer, with venv) and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# Tests start a hundred commands: without bytecode each would compile three hundred modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-slow lint house reference bench audit fuzz sbom wheel pip-audit docs lock lock-docs clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "veilcube needs Python 3.11 or newer: run 'make PYTHON=python3.12 $(MAKECMDGOALS)'"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv \
		|| { echo "could not make .venv: install Python's venv module (Debian: apt-get install python3-venv)"; exit 1; }
	@echo "installing pinned packages into .venv (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	@$(BIN)/veilcube demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# How large the rooms are, whether imports enter by doors, and what still asks for types.
house: setup
	$(BIN)/python -m tools.house --all

# Writes what the reference pages take from the code; a test fails when they are out of date.
reference: setup
	$(BIN)/python tools/reference.py
	$(BIN)/python -m veilcube.cli.reference docs/reference/command-line.md

# Each of the two workers has one core: threads of linear algebra would wait for each other.
test: lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-slow: setup
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m slow

bench: setup
	$(BIN)/python -m benchmarks

# Every mechanism of veilcube with fresh entropy, about half an hour: audit-report/audit.txt, .json and .html.
audit: setup
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tools.audit audit-report

# Every reader of files and texts of others for ten minutes; what breaks one is kept in tests/fuzz/corpus.
fuzz: setup
	PYTHONPATH=tests:. OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz --seconds $${SECONDS_EACH:-600}

# What is inside, for whoever keeps lists: CycloneDX, from the lock.
sbom: setup
	$(BIN)/python -m tools.sbom sbom.json

# The same bytes whenever and wherever it is built.
wheel: setup
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-1577836800} $(BIN)/python -m hatchling build -t wheel

# Optional: needs the network, and says so where there is none.
pip-audit: setup
	@test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install -q pip-audit; } \
		>/dev/null 2>&1 || true
	@$(BIN)/python -m tools.known_flaws .venv-audit/bin/pip-audit -r requirements.lock --disable-pip -f json

# The pages of docs/ as a site in site/: open site/index.html. Broken links and anchors fail. Only the first time needs the network.
docs: .venv-docs/.installed
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict --clean

.venv-docs/.installed: requirements-docs.lock
	@test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	@echo "installing pinned packages for the docs site into .venv-docs"
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

# The lock names no index: it is the same wherever packages come from.
lock:
	$(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet uv
	.venv-lock/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --quiet -o requirements.lock
	rm -rf .venv-lock

lock-docs:
	$(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet uv
	echo "mkdocs-material>=9.7" | .venv-lock/bin/uv pip compile - --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --quiet -o requirements-docs.lock
	rm -rf .venv-lock

clean:
	rm -rf .venv .venv-audit .venv-docs .data audit-report sbom.json dist .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-report site
