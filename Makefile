# Two commands for a newcomer: `make demo` and `make test`. Both install into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help install demo test test-slow check format bench-smoke clean clean-kernels

help:
	@echo "make demo        install, then solve the bundled example with progress and a picture"
	@echo "make test        install, then run the tests"
	@echo "make test-slow   the long proofs and sweeps"
	@echo "make check       ruff, mypy, fast tests"
	@echo "make bench-smoke the benchmarks on small data, to see that they run"

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: install
	$(BIN)/certikmeans demo --output-dir demo-output

test: install
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: install
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-smoke: install
	$(BIN)/python -m benchmarks smoke

# numba's cache does not notice that a kernel called by another file has changed.
clean-kernels:
	find src -name '*.nb[ci]' -delete

clean:
	rm -rf $(VENV) demo-output .mypy_cache .ruff_cache .pytest_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
