# Everything is installed into .venv, from requirements.lock; nothing outside this folder changes.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq
SNAKEMAKE := $(BIN)/snakemake --cores all
INSTALLED := .venv/installed
LOCKED := .venv/locked

.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Set-up ---------------------------------------------------------------------------------------

$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "neuralrace needs Python 3.11 or newer and '$(PYTHON)' is none." \
	    "Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Installing the locked environment into .venv: about a minute, once"
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes -r requirements.lock
	@touch $@

# Without build isolation, as the lock holds the build tool too: nothing unlocked is fetched.
$(INSTALLED): $(LOCKED) pyproject.toml
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m neuralrace.known_answers
	@touch $@

.PHONY: install
install: $(INSTALLED) ## install everything into .venv

# Results --------------------------------------------------------------------------------------

.PHONY: figures
figures: $(INSTALLED) ## train, solve, measure, judge and draw everything
	$(SNAKEMAKE) figures

.PHONY: claims
claims: $(INSTALLED) ## judge the claims of the papers
	$(SNAKEMAKE) claims

.PHONY: blind
blind: $(INSTALLED) ## judge the claims on fresh seeds, and with what is ours doubled
	$(SNAKEMAKE) blind
	$(SNAKEMAKE) claims

.PHONY: verify
verify: $(INSTALLED) ## check finished results against their checksums, schema and specification
	$(SNAKEMAKE) verify

.PHONY: report
report: $(INSTALLED) ## pack figures, claims and provenance of finished results into report.zip
	$(SNAKEMAKE) --report report.zip

.PHONY: smoke
smoke: $(INSTALLED) ## the whole workflow at a fraction of its size, into results/smoke
	$(SNAKEMAKE) gallery metrics --configfile config/*/smoke.yaml

.PHONY: benchmarks
benchmarks: $(INSTALLED) ## measure training throughput, and where the time of make figures goes
	$(BIN)/python benchmarks/trainer.py
	$(BIN)/python benchmarks/routing.py
	$(BIN)/python benchmarks/routing.py --scaling
	$(BIN)/python benchmarks/localization.py
	$(BIN)/python benchmarks/natural_images.py
	$(SNAKEMAKE) figures
	$(BIN)/python benchmarks/workflow.py

# Code -----------------------------------------------------------------------------------------

.PHONY: test
test: $(INSTALLED) ## run the test suite
	@$(BIN)/pytest -q -n 2

.PHONY: check
check: $(INSTALLED) ## lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint
	$(BIN)/pyright

.PHONY: manual
manual: $(INSTALLED) ## regenerate config/schema.json, the key tables of config/README.md and docs/reference.md
	$(BIN)/python -m neuralrace.manual

.PHONY: lock
lock: $(INSTALLED) ## bring requirements.lock up to date with pyproject.toml
	$(BIN)/uv pip compile --quiet --no-header --generate-hashes --no-emit-index-url --extra dev --universal \
	  --python-version 3.11 pyproject.toml -o requirements.lock

.PHONY: clean
clean: ## delete caches; results and the environment stay
	rm -rf .cache .hypothesis .pytest_cache .ruff_cache build dist src/*.egg-info
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
