PYTHON ?= python3
BIN := .venv/bin
GAME ?= ugo
SECONDS ?= 60
PROTOS := $(shell find proto -name '*.proto')

FAST := client_sdk/seatwise_fast

.PHONY: docs release compiled compiled-site failpoints fast-wheel help setup demo league test lint format bench golden openapi rules proto mutants chaos simulate browser soak clean matches-needed lock audit sbom
.DEFAULT_GOAL := help

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: .venv/ready .venv/stubs .venv/fast ## install into .venv and generate the stubs; every other target runs this by itself

.venv/ready: pyproject.toml requirements.lock proto/build_stubs.py
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
	  uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements.lock && \
	  uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --editable .; \
	else \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock && \
	  $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .; \
	fi
	@touch $@

.venv/stubs: .venv/ready $(PROTOS)
	@$(BIN)/python proto/build_stubs.py >/dev/null
	@touch $@

.venv/fast: .venv/ready $(FAST)/ugo_rules.c $(FAST)/build_extension.py
	@$(BIN)/python $(FAST)/build_extension.py >/dev/null || true # it says why; all else works without
	@touch $@

proto: .venv/ready ## generate the stubs again, after you edit a .proto file
	$(BIN)/python proto/build_stubs.py

demo: setup ## start a server and four bots, play matches and verify their records (or GAME=ubongo)
	$(BIN)/seatwise demo --game $(GAME)

league: setup ## play a small duplicate league of each game, verify it and write its page to league-results/
	$(BIN)/seatwise league run docs/leagues/ugo.toml --results league-results
	$(BIN)/seatwise verify league-results/season.bundle
	$(BIN)/seatwise league run docs/leagues/ubongo.toml --results league-results/ubongo
	$(BIN)/seatwise verify league-results/ubongo/season.bundle

test: setup lint ## run all checks and tests that CI runs
	$(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder -m 'not slow'
	$(BIN)/python tests/mutants/mutants.py --short

lint: setup ## check formatting, types, layers, protos and deploy/
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	$(BIN)/buf lint proto
	$(BIN)/python deploy/check.py

format: setup ## fix whatever the formatter and the linter can fix
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

fast-wheel: setup ## build the wheel of seatwise_fast, the optional compiled rules, in dist/; needs a C compiler
	$(BIN)/python $(FAST)/build_wheel.py

bench: setup ## measure the table of docs/benchmarks.md; also writes bench-results.json (COMPILED=1 measures the compiled build)
	$(if $(COMPILED),$(MAKE) --no-print-directory compiled-site)
	$(if $(COMPILED),PYTHONPATH=$(CURDIR)/dist/compiled/site) $(BIN)/python tests/bench/bench.py

chaos: setup ## harm real processes, disks, clocks and links while real bots play, and check that nothing is lost (SECONDS=60 FAULTS="disk links" SEED=...)
	PYTHONPATH=tests $(BIN)/python -m chaos.chaos --seconds $(SECONDS) $(addprefix --fault ,$(FAULTS)) $(if $(SEED),--seed $(SEED))

golden: setup ## write tests/golden/ again; a difference means that the rules have changed
	$(BIN)/python tests/golden/golden.py --write

openapi: setup ## write tests/golden/openapi.txt again; a difference names what changes in the REST API
	PYTHONPATH=tests $(BIN)/python tests/golden/openapi_golden.py --write

rules: setup ## write the pages of the rules again, after you edit docs/rules/ or the drawings of the viewer; needs Node
	$(BIN)/python docs/rules/build_pages.py --draw

mutants: setup ## plant faults, one at a time; a test must find each
	$(BIN)/python tests/mutants/mutants.py

failpoints: setup ## harm a process at every step that it takes with Redis or a bot, in virtual time (STORY=plain HARM='killed after')
	PYTHONPATH=tests $(BIN)/python -m simulation.failpoints $(if $(STORY),--story '$(STORY)') $(if $(HARM),--harm '$(HARM)')

simulate: setup ## simulate SEEDS=200 worlds of referees, bots and faults in virtual time, or repeat SEED=17
	PYTHONPATH=tests $(BIN)/python -m simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),40))

matches-needed: setup ## measure how many matches separate two bots: plain, duplicate, corrected by par; takes 15 minutes
	@$(BIN)/python tests/bench/matches_needed.py

browser: setup ## look at the pages in a real browser, where one is installed; with axe, where that can be installed
	@$(BIN)/python -c 'import axe_playwright_python' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[browser]' || true
	$(BIN)/pytest -q -m slow tests/server/pages/test_pages_browser.py tests/server/pages/test_guests_browser.py tests/client_sdk/test_replay_browser.py

soak: setup ## run the tests that are too slow for `make test`, and all others on the compiled build
	$(BIN)/pytest -q -m slow
	$(MAKE) --no-print-directory compiled

compiled: compiled-site ## build a wheel with the compiled core, and run the tests of `make test` on it
	PYTHONPATH=$(CURDIR)/dist/compiled/site $(BIN)/pytest -q -n 2 --dist loadfile -m 'not slow'

compiled-site: setup
	@rm -rf dist/compiled && mkdir -p dist/compiled/site
	SEATWISE_COMPILE=1 $(BIN)/python -m hatchling build -t wheel -d dist/compiled
	@$(BIN)/python -m zipfile -e dist/compiled/*.whl dist/compiled/site

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command 'make lock' pyproject.toml

lock: ## write requirements.lock and deploy/requirements.lock again, after you edit a dependency (UPGRADE=1 takes the newest versions)
	@test -x $(BIN)/uv || { $(PYTHON) -m venv .venv && $(BIN)/pip install --quiet --disable-pip-version-check uv; }
	@$(LOCK) $(if $(UPGRADE),--upgrade) --extra dev --output-file requirements.lock
	@$(LOCK) $(if $(UPGRADE),--upgrade) --extra server --constraints requirements.lock --output-file deploy/requirements.lock

audit: setup ## look up the locked versions in the database of known vulnerabilities
	@$(BIN)/python deploy/audit.py requirements.lock

sbom: setup ## write the bill of materials of a server to dist/seatwise.cdx.json (CycloneDX)
	@mkdir -p dist
	@$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements deploy/requirements.lock \
	  --pyproject pyproject.toml --output-reproducible --output-file dist/seatwise.cdx.json
	@echo dist/seatwise.cdx.json

docs: setup ## build the site of docs/ in dist/site; every warning is an error
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

release: setup ## check version and changelog, build what is published in dist/release, and set the tag
	$(BIN)/python deploy/release.py

clean: ## delete the environment and all caches; results of matches and benchmarks stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
