# Everything is installed into .venv, from the locks; nothing outside this folder changes.
PYTHON ?= python3
BIN := .venv/bin
LOCKED := .venv/locked
INSTALLED := .venv/installed
TOOLS := .venv/tools
CLUSTER := .venv/cluster
CUDA := .venv/cuda

# make figures PROFILE=profiles/slurm: jobs go where a profile of Snakemake says
ifdef PROFILE
RUNNING := $(CLUSTER)
SNAKEMAKE := $(BIN)/python -m neuralrace.workflow.profile $(PROFILE) && \
  $(BIN)/snakemake --workflow-profile $(PROFILE)
else
RUNNING := $(INSTALLED)
SNAKEMAKE := $(BIN)/snakemake --cores all
endif

.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Set-up ---------------------------------------------------------------------------------------

# uv reads no settings of pip; where packages come from is told it in its own words.
UV := set -a; eval "$$($(BIN)/python -m pip config list | sed -n "s/\\\\n/ /g; \
  s/^[^=]*[.]index-url=/UV_DEFAULT_INDEX=/p; s/^[^=]*[.]extra-index-url=/UV_INDEX=/p; \
  s/^[^=]*[.]cert=/SSL_CERT_FILE=/p")"; UV_INDEX_STRATEGY=unsafe-best-match; \
  $(BIN)/uv pip
INSTALL := $(UV) install --quiet --python $(BIN)/python

# Importing a module once compiles it. A run imports a fifth of all modules that are installed.
COMPILED := neuralrace.api.simulation neuralrace.figures.plot snakemake.cli \
  $(addprefix neuralrace.workflow.,draw judge measure solve study train)
$(INSTALLED): export PYTHONDONTWRITEBYTECODE :=

$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "neuralrace needs Python 3.11 or newer and '$(PYTHON)' is none." \
	    "Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making the environment .venv"
	@$(PYTHON) -m venv .venv
	@awk '/^[^ #]/ { wanted = /^uv==/ } wanted' requirements.lock > .venv/uv.lock
	@$(BIN)/python -m pip --disable-pip-version-check install -qq --require-hashes -r .venv/uv.lock
	@echo "Installing the packages that a run needs (half a minute)"
	@$(INSTALL) --require-hashes -r requirements.lock
	@touch $@

# Without build isolation, as the lock holds the build tool too: nothing unlocked is fetched.
$(INSTALLED): $(LOCKED) pyproject.toml
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@echo "Checking numerical accuracy on this machine"
	@$(BIN)/python -c '$(COMPILED:%=import %;)' & \
	  $(BIN)/python -m neuralrace.testing.known_answers && wait $$!
	@touch $@

$(TOOLS): $(INSTALLED) requirements-dev.lock
	@echo "Installing what developing needs"
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

# Separate, as each start of Snakemake takes .4 s longer with it.
$(CLUSTER): $(INSTALLED) requirements-cluster.lock
	@echo "Installing what submits jobs to a cluster"
	@$(INSTALL) --require-hashes -r requirements-cluster.lock
	@touch $@

$(CUDA): $(INSTALLED) requirements-cuda.lock
	@echo "Installing what a GPU needs (3 GB)"
	@$(INSTALL) --require-hashes -r requirements-cuda.lock
	@touch $@

.PHONY: cuda
cuda: $(CUDA) ## install CUDA into .venv, for NVIDIA GPUs
	@echo "Installed into .venv. The next run trains on the GPU what is faster there"

.PHONY: install
install: $(INSTALLED) ## install what a run needs into .venv
	@echo "Installed into .venv. Next: . .venv/bin/activate && neuralrace run deep_linear/staircase"
	@echo "All figures and claims: make figures"

# Snakemake keeps what it reads in a home, where there is one to write to.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export XDG_CACHE_HOME ?= $(CURDIR)/.cache
endif

# Results --------------------------------------------------------------------------------------

.PHONY: figures
figures: $(RUNNING) ## train, solve, measure, judge and draw everything
	$(SNAKEMAKE) figures

.PHONY: claims
claims: $(RUNNING) ## judge the claims of the papers
	$(SNAKEMAKE) claims

.PHONY: blind
blind: $(RUNNING) ## judge the claims again with fresh seeds
	$(SNAKEMAKE) blind
	cp results/blind.json config/blind.json
	$(SNAKEMAKE) claims

.PHONY: ranges
ranges: $(RUNNING) ## judge the claims again at other values of our own settings
	$(SNAKEMAKE) ranges
	cp results/ranges.json config/ranges.json
	$(SNAKEMAKE) claims

.PHONY: verdicts
verdicts: $(RUNNING) ## judge the claims, and keep the verdicts for the site
	$(SNAKEMAKE) claims
	$(BIN)/python -m neuralrace.claims.stored results config/verdicts.json $$(git rev-parse HEAD)

DRAW ?= 1
.PHONY: board
board: $(RUNNING) ## score all theories, and keep the board and its pictures for the site
	$(BIN)/neuralrace benchmark --draw $(DRAW)
	$(BIN)/python -m neuralrace.board.stored results config/benchmark/board.json $$(git rev-parse HEAD)
	rm -rf figures/slim/benchmark && cp -r figures/benchmark figures/slim/benchmark
	rm figures/slim/benchmark/board.sha256

.PHONY: verify
verify: $(RUNNING) ## check finished results against their checksums, schema and specification
	$(SNAKEMAKE) verify

.PHONY: report
report: $(INSTALLED) ## pack figures, claims and provenance of finished results into report.zip
	@test -f results/claims.md || { echo "report.zip packs finished results, and there are none." \
	  "Compute them first: make figures" >&2; exit 1; }
	$(SNAKEMAKE) --report report.zip

.PHONY: smoke
smoke: $(RUNNING) ## train, solve, measure and draw everything at a fraction of its size, into results/smoke
	$(SNAKEMAKE) gallery metrics --config settings='config/*/smoke.yaml'

.PHONY: benchmarks
benchmarks: $(INSTALLED) ## measure training throughput, and where the time of make figures goes
	$(BIN)/python benchmarks/trainer.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/routing.py
	$(BIN)/python benchmarks/routing.py --scaling
	$(BIN)/python benchmarks/localization.py
	$(BIN)/python benchmarks/natural_images.py
	$(SNAKEMAKE) figures
	$(BIN)/python benchmarks/workflow.py

# Code -----------------------------------------------------------------------------------------

.PHONY: test
test: $(TOOLS) ## run the test suite
	@$(BIN)/pytest -q -n 2 --durations=10

# make faults REPEAT=10: each as often as docs/reliability.md shows, which is then written
ifdef REPEAT
export REPEAT
REPORT := $(if $(filter 10,$(REPEAT)),--reliability docs/reliability.md)
endif
.PHONY: faults
faults: $(TOOLS) $(CLUSTER) ## inject faults into real runs; REPEAT=10 also writes docs/reliability.md
	@$(BIN)/pytest -q -n 2 --durations=10 -m faults tests/workflow/faults $(REPORT)

.PHONY: check
check: $(TOOLS) ## lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint
	$(BIN)/pyright

.PHONY: audit
audit: $(TOOLS) ## ask for known vulnerabilities of what a run installs; fails where nobody knows
	@$(BIN)/python .ci/audit.py requirements.lock

.PHONY: rulegraph
rulegraph: $(TOOLS) ## draw the graph of the workflow's rules, docs/rules.svg
	$(BIN)/snakemake --rulegraph dot figures metrics claims blind ranges | $(BIN)/python docs/_ext/rulegraph.py docs/rules.svg

SITE := .cache/docs

.PHONY: docs
docs: $(TOOLS) ## build the site, offline, into docs/_build/html
	@mkdir -p $(SITE)/source
	$(BIN)/sphinx-build -q -W --keep-going -n -c docs -d $(SITE)/doctrees $(SITE)/source docs/_build/html
	@echo "The site is made: open docs/_build/html/index.html"

COMPILE := $(UV) compile --quiet --no-header --generate-hashes --no-emit-index-url --universal \
  --python-version 3.11 pyproject.toml

.PHONY: lock
lock: $(INSTALLED) ## bring the locks up to date with pyproject.toml
	@$(COMPILE) --group install -o requirements.lock
	@$(COMPILE) --extra dev --extra docs -c requirements.lock -o requirements-dev.lock
	@$(COMPILE) --extra cluster -c requirements.lock -o requirements-cluster.lock
	@$(COMPILE) --extra cuda -c requirements.lock -o requirements-cuda.lock

.PHONY: clean
clean: ## delete caches; results and the environment stay
	rm -rf .cache .hypothesis .pytest_cache .ruff_cache build dist docs/_build src/*.egg-info
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
