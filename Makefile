PYTHON ?= python3
BIN := .venv/bin
GAME ?= ugo
SECONDS ?= 60
PROTOS := $(shell find proto -name '*.proto')

.PHONY: help setup demo league test lint format bench golden proto mutants chaos simulate soak clean matches-needed
.DEFAULT_GOAL := help

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: .venv/ready .venv/stubs ## install into .venv and generate the stubs; every other target runs this by itself

.venv/ready: pyproject.toml proto/build_stubs.py
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
	  uv pip install --quiet --python $(BIN)/python --editable '.[server,embedded,dev]'; \
	else \
	  $(PYTHON) -m venv .venv && $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[server,embedded,dev]'; \
	fi
	@touch $@

.venv/stubs: .venv/ready $(PROTOS)
	@$(BIN)/python proto/build_stubs.py >/dev/null
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
	$(BIN)/pytest -q -n 2 --dist loadfile -m 'not slow'
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

bench: setup ## measure the table of docs/benchmarks.md; also writes bench-results.json
	@$(BIN)/python -c 'import pyspiel' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]' || true
	$(BIN)/python tests/bench/bench.py

chaos: setup ## kill real processes while real bots play, and check that nothing is lost (SECONDS=60 SEED=...)
	PYTHONPATH=tests $(BIN)/python -m chaos.chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

golden: setup ## write tests/golden/ again; a difference means that the rules have changed
	$(BIN)/python tests/golden/golden.py --write

mutants: setup ## plant faults, one at a time; a test must find each
	$(BIN)/python tests/mutants/mutants.py

simulate: setup ## simulate SEEDS=200 worlds of referees, bots and faults in virtual time, or repeat SEED=17
	PYTHONPATH=tests $(BIN)/python -m simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),40))

matches-needed: setup ## measure how many matches separate two bots: plain, duplicate, corrected by par; takes 15 minutes
	@$(BIN)/python tests/bench/matches_needed.py

soak: setup ## run the tests that are too slow for `make test`
	$(BIN)/pytest -q -m slow

clean: ## delete the environment and all caches; results of matches and benchmarks stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
