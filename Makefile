# Two commands: `make demo` shows it, `make test` checks it. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo $(BIN)/uv)
SYNC := UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --frozen --inexact --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test test-vllm test-slow check lock schemas bench clean

help:  ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Habitus needs Python 3.11 or newer; give one with PYTHON=..." >&2; exit 1; }
	@if command -v uv >/dev/null; then uv venv --quiet --python $(PYTHON) $(VENV); \
	else $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet uv; fi

.venv/installed: $(BIN)/python pyproject.toml uv.lock
	@echo "installing into $(VENV)" >&2
	@$(SYNC) --no-dev
	@touch $@

.venv/installed-dev: $(BIN)/python pyproject.toml uv.lock
	@echo "installing into $(VENV), with what the tests need" >&2
	@$(SYNC)
	@touch $@ .venv/installed

demo: .venv/installed  ## the whole pipeline on the embedded model, in a few minutes
	@$(BIN)/habitus demo

check: .venv/installed-dev  ## format, lint, types, layers, shipped content
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=engine $(BIN)/lint-imports --no-cache
	$(BIN)/habitus check norms personas checklists judges experiments
	$(BIN)/habitus schemas --check .

test: check  ## everything that CI runs
	$(BIN)/python -m pytest

test-slow: .venv/installed-dev  ## minutes of simulation: coverage of intervals, planted truth
	$(BIN)/python -m pytest -m slow

lock:  ## lock the versions anew
	$(UV) lock

schemas: .venv/installed  ## write the JSON Schemas of content files
	$(BIN)/habitus schemas .

clean:  ## remove what was installed and built
	rm -rf $(VENV) .venv-vllm dist build
