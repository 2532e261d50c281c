# Targets install into .venv first. To begin with: `make demo`, and `make quick` while editing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# First seeds of the suites that compare bounds, heuristics and `solve` with enumeration.
SMOKE := tests/contract/test_bounds.py tests/contract/test_heuristics.py tests/solver/test_solve.py \
	tests/certificate/test_write.py tests/test_options.py tests/test_architecture.py tests/test_suite.py

.PHONY: help install demo quick test test-slow check format bench-smoke docs gallery dist release-check \
	clean clean-kernels

help:
	@echo "make demo          install, then solve the bundled example with progress and a picture"
	@echo "make quick         lint, types and a smoke subset of the tests, within 30 s"
	@echo "make test          install, then run the tests"
	@echo "make test-slow     the long proofs and sweeps"
	@echo "make check         ruff, mypy, fast tests, documentation"
	@echo "make docs          build the documentation into build/site, warnings as errors"
	@echo "make gallery       run the examples and write their pages in docs/gallery"
	@echo "make bench-smoke   the benchmarks on small data"
	@echo "make dist          wheel and source archive in dist/"
	@echo "make release-check install both in fresh environments and run the demo there"

install: $(VENV)/.installed

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	touch $@

# The dependencies of the demo only: its first run should not wait for linters.
$(VENV)/.installed-demo: pyproject.toml | $(VENV)/.venv
	$(PIP) --editable '.[plot]'
	touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.venv
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.installed-demo

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.venv
	$(PIP) --editable '.[dev,docs]'
	touch $@ $(VENV)/.installed $(VENV)/.installed-demo

$(VENV)/.installed-release: pyproject.toml | $(VENV)/.venv
	$(PIP) 'build>=1.2' 'twine>=6'
	touch $@

demo: $(VENV)/.installed-demo
	$(BIN)/certikmeans demo --output-dir demo-output

# One process: starting two takes as long as the tests. mypy checks what changed (its cache).
quick: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -x -m smoke $(SMOKE)

test: install
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: install
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

# Kernels are compiled on one core while the other builds documentation and checks types. The tests
# wait for them: two test processes would compile the same kernels twice.
check: $(VENV)/.installed-docs
	$(BIN)/certikmeans warm-up >/dev/null 2>&1 & \
	$(MAKE) docs && $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy; \
	status=$$?; wait; exit $$status
	$(BIN)/python -m pytest -n 2 --dist worksteal

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The variable suppresses an announcement of the theme's authors. Not --quiet: with it, warnings are
# suppressed before --strict counts them.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

gallery: install
	$(BIN)/python -m tools.gallery

bench-smoke: install
	$(BIN)/python -m benchmarks smoke

dist: $(VENV)/.installed-release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tools.release_check --contents

release-check: dist
	$(BIN)/python -m tools.release_check

# numba's cache does not notice that a kernel called by another file has changed.
clean-kernels:
	find src -name '*.nb[ci]' -delete

clean:
	rm -rf $(VENV) demo-output build dist .mypy_cache .ruff_cache .pytest_cache
	find src tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} +
