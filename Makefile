PYTHON ?= python3
BIN := .venv/bin
GAME ?= ugo
PROTOS := $(shell find proto -name '*.proto' -o -name '*.py') server/seatwise_server/services/declarations.py

FAST := client_sdk/seatwise_fast

# Where it is set, every worker and every process that a test starts would compile the same files again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test lint format proto bench nightly docs release clean openapi mutation browser compiled compiled-site lock sbom size
.DEFAULT_GOAL := help

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16
	@echo; echo Rarely:
	@grep -hE '^[a-z-]+:.*#:' $(MAKEFILE_LIST) | sed -E 's/:[^#]*#: /\t/' | expand -t 16

setup: .venv/ready .venv/stubs .venv/fast ## install into .venv and generate the stubs; every other target runs this by itself
	@:

# Of the output of pip: a line for every 20 packages. Where pip fails, it has said why.
COUNT := awk -v all=$$(grep -c == requirements.lock) '/^Collecting/ && ++n % 20 == 0 {print "    " n " of " all; fflush()} \
	/^Installing/ {print "    all are here; unpacking them"; fflush()} /^FAILED/ {failed = 1} END {exit failed}'

.venv/ready: pyproject.toml requirements.lock proto/build_stubs.py
	@echo "Setting up, once: everything goes into the folder .venv, and nothing else is changed."
	@echo "1 of 3: downloading and installing the packages of requirements.lock"
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
	  uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes --requirement requirements.lock && \
	  uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --editable .; \
	else \
	  $(PYTHON) -m venv .venv && \
	  { $(BIN)/pip install --disable-pip-version-check --require-hashes --requirement requirements.lock || echo FAILED; } | $(COUNT) && \
	  $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .; \
	fi
	@touch $@

.venv/stubs: .venv/ready $(PROTOS) $(wildcard docs/rules/*)
	@echo "2 of 3: generating code from proto/"
	@$(BIN)/python proto/build_stubs.py >/dev/null
	@touch $@

.venv/fast: .venv/ready $(FAST)/ugo_rules.c $(FAST)/build_extension.py
	@echo "3 of 3: compiling the fast rules of UGO!, where there is a C compiler"
	@$(BIN)/python $(FAST)/build_extension.py >/dev/null || true # it says why; all else works without
	@touch $@

proto: .venv/ready ## generate the stubs again, after you edit a .proto file
	$(BIN)/python proto/build_stubs.py

demo: setup ## start a server and four bots, play matches and verify their records (or GAME=ubongo)
	$(BIN)/seatwise demo --game $(GAME)

WORKERS := -n 4 --dist loadfile --no-loadscope-reorder

# The tests are compiled here once, and not by all workers at the same time.
.venv/tests: .venv/stubs
	@$(BIN)/pytest -q --collect-only >/dev/null || true # `make test` says what is wrong
	@touch $@

test: setup lint .venv/tests ## run all checks and tests that CI runs
	$(BIN)/pytest -q $(WORKERS) -m 'not slow' --durations=40

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

bench: setup ## measure the table of docs/benchmarks.md; also writes bench-results.json (COMPILED=1 measures the compiled build)
	$(if $(COMPILED),$(MAKE) --no-print-directory compiled-site)
	$(if $(COMPILED),PYTHONPATH=$(CURDIR)/dist/compiled/site) $(BIN)/python tests/bench/bench.py

nightly: setup ## run what is too slow for `make test`: slow tests, planted faults, the site of docs/, the compiled build; within an hour
	SEATWISE_TESTS=full $(BIN)/pytest -q -n 2 --dist loadfile -m 'slow or sampled' --durations=40
	SEATWISE_TESTS=full $(BIN)/python tests/mutants/mutants.py
	$(MAKE) --no-print-directory docs compiled

mutation: setup #: change the core of the referee and the codec at random with mutmut, and print how much of it the tests find; within an hour
	@$(BIN)/python -c 'import mutmut' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[mutation]'
	$(BIN)/python tests/mutants/mutation.py

openapi: setup #: write tests/golden/openapi.txt again; a difference names what changes in the REST API
	PYTHONPATH=tests $(BIN)/python tests/golden/openapi_golden.py --write

browser: setup #: look at the pages in a real browser, where one is installed; with axe, where that can be installed
	@$(BIN)/python -c 'import axe_playwright_python' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[browser]' || true
	$(BIN)/pytest -q -m slow tests/server/pages/test_pages_browser.py tests/server/pages/test_guests_browser.py tests/client_sdk/test_replay_browser.py

compiled: compiled-site #: build a wheel with the compiled core, and run the tests of `make test` on it
	PYTHONPATH=$(CURDIR)/dist/compiled/site $(BIN)/pytest -q $(WORKERS) -m 'not slow'

compiled-site: setup
	@rm -rf dist/compiled && mkdir -p dist/compiled/site
	SEATWISE_COMPILE=1 $(BIN)/python -m hatchling build -t wheel -d dist/compiled
	@$(BIN)/python -m zipfile -e dist/compiled/*.whl dist/compiled/site

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command 'make lock' pyproject.toml

lock: #: write requirements.lock and deploy/requirements.lock again, after you edit a dependency (UPGRADE=1 takes the newest versions)
	@test -x $(BIN)/uv || { $(PYTHON) -m venv .venv && $(BIN)/pip install --quiet --disable-pip-version-check uv; }
	@$(LOCK) $(if $(UPGRADE),--upgrade) --extra dev --output-file requirements.lock
	@$(LOCK) $(if $(UPGRADE),--upgrade) --extra server --constraints requirements.lock --output-file deploy/requirements.lock

sbom: setup #: write the bill of materials of a server to dist/seatwise.cdx.json (CycloneDX)
	@mkdir -p dist
	@$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements deploy/requirements.lock \
	  --pyproject pyproject.toml --output-reproducible --output-file dist/seatwise.cdx.json
	@echo dist/seatwise.cdx.json

size: .venv/ready #: count files and lines of product and tests, by folder
	@$(BIN)/python deploy/size.py

docs: setup ## build the site of docs/ in dist/site; every warning is an error
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

release: setup ## check version and changelog, build what is published in dist/release, and set the tag
	$(BIN)/python deploy/release.py

clean: ## delete the environment and all caches; results of matches and benchmarks stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
