# make demo   the main job, end to end, on the built-in robot
# make test   set up and run the tests
# make check  what continuous integration runs: tests, linter, formatter, types, architecture
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready-test
DEMO_STAMP := $(VENV)/.ready

.PHONY: demo test lint types architecture check bench campaign-fuzz campaign-kills campaign-memory clean

demo: $(DEMO_STAMP)
	$(BIN)/dynid demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

architecture: $(STAMP)
	$(BIN)/python -m pytest tests/test_architecture.py

check: test lint types architecture

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(STAMP): $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@ $(DEMO_STAMP)

clean:
	rm -rf $(VENV) build dist out
