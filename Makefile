# Everything runs in .venv, made here from a Python 3.11 to 3.13; nothing needs root. `make PYTHON=python3.13 test` picks one.

CANDIDATES := python3.11 python3.12 python3.13 python3 python
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
PYTHON ?= $(shell for p in $(CANDIDATES); do $$p -c '$(FITS)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are first imported: to compile all of 200 packages takes longer than to install them.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt
PINS := pyproject.toml constraints.txt
# One more than there are cores, as tests wait for processes that they start.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 1); echo $$(( n > 4 ? 5 : n + 1 )))
export PIP_NO_WARN_SCRIPT_LOCATION := 1
unexport PYTHONDONTWRITEBYTECODE # hundreds of processes of the tests would each compile all modules: 0.6 s of CPU time

.DEFAULT_GOAL := help
.PHONY: help demo test pytest test-fast test-times lint types layers readme gate docs bench gpu peers peers-ace peers-skills peers-assistants soak wheel package hashes audit clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.base ## 100 simulated users, 26 weeks, all arms; ends with a table and a page
	$(BIN)/skg-bench run experiment=assistant_growth profile=demo

# mypy needs a core for a minute, and while tests are collected, others wait.
test: $(VENV)/.dev ## all that CI runs: ruff, format, mypy, import-linter, pytest
	@$(MAKE) --no-print-directory --jobs 2 lint layers types pytest

pytest: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not soak and not gpu"

# Of each room what simulates nothing and starts no command; a test holds the list against the rooms.
FAST := tests/test_house.py tests/test_circles.py tests/core tests/asking tests/runfolder tests/skillbook \
  tests/analysis/statistics tests/analysis/counts tests/analysis/summary/test_regret.py \
  tests/analysis/comparison/test_claims.py tests/analysis/comparison/test_flips.py tests/analysis/lift/test_removal.py \
  tests/analysis/labels/test_rater_labels.py tests/analysis/policy_value tests/analysis/gate/test_against.py tests/analysis/gate/test_baseline.py tests/analysis/report/test_chart.py \
  tests/analysis/report/test_verdict.py tests/app/test_composed_arms.py tests/app/test_compose.py tests/app/test_help.py \
  tests/app/test_parameters.py tests/assistant/pipeline/test_sample.py tests/assistant/pipeline/test_signals.py \
  tests/assistant/pipeline/test_skillbook_table.py tests/curator tests/embedder/test_hashing.py \
  tests/embedder/test_precomputed.py tests/engine/test_labels.py tests/engine/test_pieces.py \
  tests/engine/test_vectors.py tests/launcher/test_local.py tests/llm/test_endpoint_parameters.py \
  tests/llm/test_simulated.py tests/peers tests/policy/test_policies.py tests/policy/test_softmax.py tests/policy/test_thompson.py \
  tests/reranker/test_linucb.py tests/reranker/test_mlp.py tests/reranker/test_rerankers.py tests/router \
  tests/simulator/advice tests/simulator/logs/test_recorded.py tests/simulator/test_order.py \
  tests/simulator/test_stream.py tests/store/test_bad_days.py tests/study/test_conditions.py tests/tracker/test_events.py \
  tests/tracker/test_trackers.py

test-fast: $(VENV)/.dev ## two minutes, between edits: some tests of each room; no laws, runs, commands, experiments
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not soak and not gpu" $(FAST)

test-times: $(VENV)/.dev ## make test, then the 40 dearest modules and tests by CPU time, child processes included
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not soak and not gpu" -p tests.times

lint: $(VENV)/.dev ## ruff, whether the code is formatted, and the figures of docs/architecture.md
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/python -m tests.house_figures

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

layers: $(VENV)/.dev ## who may import whom
	$(BIN)/lint-imports

readme: $(VENV)/.base ## put the figures of reports/ into the sentences of all READMEs
	$(BIN)/python -m skg_bench.app.readmes

gate: $(VENV)/.dev ## did this change make the assistant worse? a fixed panel against data/gate/baseline.json
	rm -rf runs/gate
	$(BIN)/skg-bench run experiment=gate profile=gate out=runs/gate
	$(BIN)/skg-bench gate --baseline data/gate/baseline.json runs/gate

docs: $(VENV)/.dev ## the site, without any network: build/docs/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo build/docs/index.html

bench: $(VENV)/.dev ## the table of experiments/bench/speed
	$(BIN)/skg-bench experiment speed

gpu: $(VENV)/.dev ## where there is a GPU: the tests that need one, and its table into reports/
	$(BIN)/python -m pytest -q -m gpu tests/reranker/test_mlp.py tests/experiments/bench/test_gpu.py
	$(BIN)/skg-bench experiment speed/gpu --write reports

# They bring thirty packages that nothing else here needs, so they get an environment of their own.
peers: $(VENV)/.dev ## semantic-router and GPTCache beside ours, on the same vectors
	$(BIN)/python -c 'from experiments.routing_quality.corpora import clinc150, read; read(clinc150())'
	test -x runs/peers/venv/bin/python || $(BIN)/python -m venv runs/peers/venv
	runs/peers/venv/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt \
	  --editable . --requirement experiments/bench/speed/peers.txt
	runs/peers/venv/bin/python -m pytest -q tests/experiments/bench/test_peers.py
	runs/peers/venv/bin/skg-bench experiment speed/peers --write reports

# Of what 0.13.0 asks for, its two roles need 185 MB; all of it is 939 MB, among it `tau2`, which is another project's on the index.
ACE := 0.7.1 0.9.7 0.13.0
peers-ace: $(VENV)/.dev ## the published ace-framework: random batches beside our compatibility modes, and as curator=ace_framework
	set -e; for version in $(ACE); do \
	  folder=runs/peers/ace-$$version; \
	  test -x $$folder/bin/python || $(BIN)/python -m venv $$folder; \
	  $$folder/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt pydantic numpy; \
	  $$folder/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --ignore-requires-python \
	    ace-framework==$$version python-toon==0.2.0 rank-bm25==0.2.2; \
	done
	runs/peers/ace-0.13.0/bin/python -m pip --disable-pip-version-check install --quiet \
	  'pydantic-ai-slim[openai]==2.68.0' openai==3.57.0 tenacity==9.2.1
	$(BIN)/python -m pytest -q -m "not gpu" tests/skillbook/ace/test_published.py tests/peers

peers-skills: $(VENV)/.dev ## the reference library of Agent Skills reads the folders that `skillbook convert` writes
	test -x runs/peers/skills/bin/python || $(BIN)/python -m venv runs/peers/skills
	runs/peers/skills/bin/python -m pip --disable-pip-version-check install --quiet skills-ref==0.1.1
	$(BIN)/python -m pytest -q tests/skillbook/test_reference.py

MEM0_TOLD := '+arms.mem0=[assistant=mem0,assistant.parameters.memories=3]'
MEM0_FINDS = '+arms.mem0_$(1)=[assistant=python,assistant.target=experiments.locomo.stand_ins.Mem0Nearest,"assistant.parameters={most: $(1)}",freeze=null,freeze_at=null]'
MEM0_LOCOMO := $(call MEM0_FINDS,3) $(call MEM0_FINDS,20)
# mem0 asks for an older protobuf than constraints.txt has. LiteLLM pins what ours does not, and is asked over HTTP only.
peers-assistants: $(VENV)/.dev ## LiteLLM, GPTCache and mem0 as assistants: two environments, 1.4 GB; their table into reports/
	test -x runs/peers/assistants/bin/python || $(BIN)/python -m venv runs/peers/assistants
	runs/peers/assistants/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt \
	  --editable '.[llm]' gptcache==0.1.44 hypothesis pytest SQLAlchemy
	runs/peers/assistants/bin/python -m pip --disable-pip-version-check install --quiet mem0ai==2.2.1
	test -x runs/peers/litellm/bin/python || $(BIN)/python -m venv runs/peers/litellm
	runs/peers/litellm/bin/python -m pip --disable-pip-version-check install --quiet 'litellm[proxy]==1.108.7'
	export PATH="$(CURDIR)/runs/peers/litellm/bin:$$PATH"; set -e; cli=runs/peers/assistants/bin/skg-bench; \
	  runs/peers/assistants/bin/python -m pytest -q tests/assistant/test_presets.py; \
	  rm -rf runs/peers/systems runs/peers/one_memory runs/peers/more; \
	  $$cli run experiment=elsewhere profile=smoke out=runs/peers/systems '+arms.litellm_semantic=[assistant=litellm_semantic]' \
	    '+arms.gptcache_90=[assistant=gptcache,assistant.parameters.threshold=0.9]' '+arms.gptcache_80=[assistant=gptcache]' \
	    '+arms.mem0=[assistant=mem0]'; \
	  $$cli run experiment=elsewhere profile=smoke out=runs/peers/one_memory 'arms={never: [policy=never], litellm: [assistant=litellm]}'; \
	  $$cli run experiment=elsewhere profile=smoke users=40 out=runs/peers/more '+arms.gptcache_80=[assistant=gptcache]' \
	    '+arms.gptcache_90=[assistant=gptcache,assistant.parameters.threshold=0.9]'; \
	  $$cli experiment elsewhere runs/peers/systems runs/peers/one_memory runs/peers/more --write reports; \
	  rm -rf runs/peers/told; $$cli run experiment=told users=60 out=runs/peers/told $(MEM0_TOLD); \
	  $$cli experiment told runs/peers/told --write reports; $$cli experiment locomo $(MEM0_LOCOMO) --write reports

soak: $(VENV)/.dev ## the long tests: fifty kills with -9, thousands of files with faults, ...
	$(BIN)/python -m pytest -m soak

wheel: $(VENV)/.base ## build the wheel into dist/
	rm -rf dist
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .

# In an environment that has nothing else, not even pip: what is listed is what a user of the wheel gets. A file whose hash
# is not in hashes.txt is refused, whoever serves it.
PACKAGED := runs/package/empty/bin/python
package: wheel ## try the wheel in an empty environment, and list its parts in dist/sbom.json (CycloneDX)
	rm -rf runs/package
	$(BIN)/python -m venv --without-pip runs/package/empty
	$(BIN)/python -m pip --disable-pip-version-check --python $(PACKAGED) install --quiet --require-hashes --requirement hashes.txt
	$(BIN)/python -m pip --disable-pip-version-check --python $(PACKAGED) install --quiet --no-deps dist/*.whl
	$(BIN)/python -m pip --disable-pip-version-check --python $(PACKAGED) check
	cd runs/package && unset PYTHONPATH && empty/bin/skg-bench run profile=smoke out=first && empty/bin/skg-bench report first
	$(BIN)/python -m venv runs/package/tools
	runs/package/tools/bin/python -m pip --disable-pip-version-check install --quiet cyclonedx-bom==7.5.0
	runs/package/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/sbom.json $(PACKAGED)

hashes: $(VENV)/.dev ## after a change of constraints.txt: hashes.txt anew; asks the package index, downloads little
	$(BIN)/python -m tests.hashes

audit: $(BIN)/python ## do versions in constraints.txt have known weaknesses? asks the package index
	test -x runs/audit/bin/pip-audit || { $(BIN)/python -m venv runs/audit && \
	  runs/audit/bin/python -m pip --disable-pip-version-check install --quiet pip-audit==2.10.1; }
	runs/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --progress-spinner off $(AUDIT)

clean: ## remove .venv and caches; runs/ stays
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A Python without ensurepip (Debian's without python3-venv) still makes an environment, and its own pip fills it.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11, 3.12 or 3.13 found; say which: make PYTHON=/path/to/python" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
	  $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	  $(PYTHON) -m pip --disable-pip-version-check --python $@ install --quiet pip; }

$(VENV)/.base: $(PINS) | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(PINS) | $(BIN)/python
	$(PIP) --editable '.[dev,all]'
	@touch $@ $(VENV)/.base
