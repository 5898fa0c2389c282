# Two commands to begin with: `make run` and `make test`. Everything else is listed by `make help`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SGLANG := .venv-sglang
ARTICLES := .venv/article-extraction-benchmark
SHELL := /bin/bash
# Each module is compiled once, also where the environment says otherwise: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
# Tests keep their stores in memory where there is room (4 GB): a third of the time was fsync. A killed process leaves the same bytes there;
# tests/faults/test_disk_faults.py stays on the disk.
MEMORY := $(shell [ -w /dev/shm ] && [ "$$(df --output=avail -k /dev/shm | tail -n 1)" -gt 4000000 ] && echo /dev/shm)

.PHONY: help setup run test test-faults test-sglang test-web test-gpu check ui bench bench-guard bench-sglang bench-sglang-gpu bench-compression bench-documents bench-search bench-embeddings bench-replay bench-research bench-articles bench-asking bench-archive docs docs-site screenshots wheel lock clean

help:             ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /|/' | column -t -s '|'

$(BIN)/.locked: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python %d.%d found; expected 3.11 or newer, e.g. make PYTHON=python3.12" % sys.version_info[:2])'
	@echo "Making $(VENV) and installing the packages of requirements.lock. pip lists each step."
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(BIN)/.installed: pyproject.toml $(BIN)/.locked
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# --no-deps: the lock has every package, and pip takes no extras (`coverage[toml]`) from lines with hashes.
$(BIN)/.locked-dev: requirements-dev.lock $(BIN)/.locked
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

setup: $(BIN)/.installed   ## make .venv with the locked dependencies

run: setup        ## index the shipped example and run one live turn, without server or network
	$(BIN)/pandora demo

test: setup $(BIN)/.locked-dev   ## all tests that need no server, kill nothing and take minutes together
	$(if $(MEMORY),PYTEST_DEBUG_TEMPROOT=$(MEMORY)) $(BIN)/python -m pytest -n 2 --dist worksteal tests

test-faults: setup $(BIN)/.locked-dev   ## kills, full disks, many processes at once, a real daemon's tick, the wheel, how time grows
	$(if $(MEMORY),PYTEST_DEBUG_TEMPROOT=$(MEMORY)) $(BIN)/python -m pytest -n 2 --dist worksteal tests/faults

# An environment of its own: SGLang pins its client library. PyTorch comes from wherever pip is told to look; a CPU build is enough.
$(SGLANG)/.locked: tests/sglang/server/requirements.lock
	@test -d $(SGLANG) || $(PYTHON) -m venv $(SGLANG)
	$(SGLANG)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r tests/sglang/server/requirements.lock
	$(SGLANG)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	@touch $@

$(SGLANG)/tiny-model/.made: $(wildcard tests/sglang/server/*.py) data/tokenizer/cl100k_base.tiktoken $(SGLANG)/.locked
	$(SGLANG)/bin/python tests/sglang/server/tiny_model.py $(SGLANG)/tiny-model
	@touch $@

$(SGLANG)/tiny-vision/.made: $(wildcard tests/sglang/server/*.py) data/tokenizer/cl100k_base.tiktoken $(SGLANG)/.locked
	$(SGLANG)/bin/python tests/sglang/server/tiny_vision.py $(SGLANG)/tiny-vision
	@touch $@

test-sglang: setup $(BIN)/.locked-dev $(SGLANG)/tiny-model/.made $(SGLANG)/tiny-vision/.made  ## the tests against real SGLang servers, on the CPU with a tiny random model
	$(BIN)/uv pip compile --quiet --python-version 3.11 --extra sglang --output-file $(SGLANG)/extra.txt pyproject.toml
	$(BIN)/python -m pytest tests/sglang

test-web: setup $(BIN)/.locked-dev  ## pages in a real headless Chromium; where there is none, root installs Debian's
	@command -v chromium chromium-browser google-chrome > /dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq \
	    && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; } \
	    || { echo "test-web: no Chromium on PATH; install one: apt-get install chromium"; exit 1; }
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/web

test-gpu: bench-sglang-gpu  ## what needs a GPU: the benchmarks over real servers, on a machine that has one

check: setup $(BIN)/.locked-dev  ## format, lint, types, architecture, recipes, registry and generated pages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/pandora recipes check
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest -p no:randomly tests/architecture

ui: setup         ## Dagster's page and daemon on workspace.yaml, over the store and history that `pandora ask` uses
	$(BIN)/pandora ui

bench: setup $(BIN)/.locked-dev  ## the speed benchmarks, as ratios
	$(BIN)/python -m benchmarks.speed

bench-guard: setup $(BIN)/.locked-dev  ## fail where a ratio of processor time got worse by more than a third (two minutes)
	$(BIN)/python -m benchmarks.guard

bench-sglang: setup $(BIN)/.locked-dev $(SGLANG)/tiny-model/.made  ## the pipeline over a real server on the CPU, as ratios (half an hour)
	$(BIN)/python -m benchmarks.sglang

bench-sglang-gpu: setup $(BIN)/.locked-dev $(SGLANG)/.locked  ## the same on a GPU, with random weights of Qwen3-0.6B's shape
	$(BIN)/python -m benchmarks.sglang --gpu

bench-compression: setup $(BIN)/.locked-dev  ## the compression benchmark beside its baselines (installs sumy for LexRank)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check sumy==0.13.0 numpy
	$(BIN)/python -m benchmarks.compression

bench-documents: setup $(BIN)/.locked-dev  ## facts that survive compression and questions answered, on documents of many kinds
	$(BIN)/python -m benchmarks.documents

bench-search: setup $(BIN)/.locked-dev  ## recall of the search, and answers, against a plain BM25 packer
	$(BIN)/python -m benchmarks.search

bench-research: setup $(BIN)/.locked-dev  ## pages read and questions answered on a small web, each figure beside its target; fails where one is missed
	$(BIN)/python -m benchmarks.research

bench-articles: setup $(BIN)/.locked-dev  ## main text of 181 public pages beside trafilatura; fetches them once (53 MB), fails where it is worse
	@test -d $(ARTICLES) || git clone --quiet --no-checkout https://github.com/scrapinghub/article-extraction-benchmark $(ARTICLES)
	@test -f $(ARTICLES)/ground-truth.json || git -C $(ARTICLES) checkout --quiet 4a3bc97 -- html ground-truth.json
	$(BIN)/python -m benchmarks.web_articles $(ARTICLES)

bench-replay: setup $(BIN)/.locked-dev  ## 500 logged calls made again, beside the calls alone
	$(BIN)/python -m benchmarks.replay

bench-embeddings: setup $(BIN)/.locked-dev  ## the same with vectors of the local model; needs: pip install -e .[embeddings]
	$(BIN)/python -m benchmarks.search --embeddings --answers 0

bench-asking: setup $(BIN)/.locked-dev  ## how often an ask over an imported history says the answer in its first 100 words
	$(BIN)/python -m benchmarks.asking

bench-archive: setup $(BIN)/.locked-dev  ## nights of 100 to 10,000 turns against a bare loop (half an hour)
	$(BIN)/python -m benchmarks.archival_run

docs: setup       ## write the generated pages of docs/ again
	$(BIN)/python docs/generate.py

docs-site: setup $(BIN)/.locked-dev  ## build the documentation as a site with search, in site/; a broken link fails
	$(BIN)/mkdocs build --strict --quiet

screenshots: setup $(BIN)/.locked-dev  ## take docs/images again, in a real headless browser
	$(BIN)/python docs/take_screenshots.py

wheel: setup $(BIN)/.locked-dev  ## build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation

lock: $(BIN)/.locked-dev         ## resolve the locked dependencies again
	$(BIN)/uv pip compile --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate --output-file requirements.lock pyproject.toml build-requirements.in
	$(BIN)/uv pip compile --universal --strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate --constraint requirements.lock --output-file requirements-dev.lock --extra test --extra dev --extra web pyproject.toml
	$(BIN)/uv pip compile --no-deps --python-version 3.11 --generate-hashes --no-header --no-annotate --output-file tests/sglang/server/requirements.lock tests/sglang/server/requirements.in

clean:            ## remove what was built
	rm -rf $(VENV) $(SGLANG) dist build
