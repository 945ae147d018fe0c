PYTHON ?= python3
BIN := .venv/bin
GAME ?= ugo
SECONDS ?= 60
PROTOS := $(shell find proto -name '*.proto')

.PHONY: help setup demo league test lint format bench golden proto mutants chaos simulate soak clean matches-needed
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: .venv/ready .venv/stubs ## everything below needs this, and calls it itself

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

proto: .venv/ready ## after editing a .proto file
	$(BIN)/python proto/build_stubs.py

demo: setup ## a server, four bots and their matches, from nothing to verified records (or GAME=ubongo)
	$(BIN)/seatwise demo --game $(GAME)

league: setup ## a small duplicate league of each game: played, verified, and told on a page in league-results/
	$(BIN)/seatwise league run docs/leagues/ugo.toml --results league-results
	$(BIN)/seatwise verify league-results/season.bundle
	$(BIN)/seatwise league run docs/leagues/ubongo.toml --results league-results/ubongo
	$(BIN)/seatwise verify league-results/ubongo/season.bundle

test: setup lint ## what CI runs
	$(BIN)/pytest -q -n 2 --dist loadfile -m 'not slow'
	$(BIN)/python tests/mutants/mutants.py --short

lint: setup ## formatting, types, layers, protos, deploy/
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	$(BIN)/buf lint proto
	$(BIN)/python deploy/check.py

format: setup ## mends what a tool can mend
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

bench: setup ## the table of docs/benchmarks.md, into bench-results.json too
	@$(BIN)/python -c 'import pyspiel' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]' || true
	$(BIN)/python tests/bench/bench.py

chaos: setup ## kills real processes while real bots play, and looks for what is lost (SECONDS=60 SEED=...)
	PYTHONPATH=tests $(BIN)/python -m chaos.chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

golden: setup ## writes tests/golden/ anew: a difference is a change of the rules
	$(BIN)/python tests/golden/golden.py --write

mutants: setup ## plants faults, one at a time; each must be found
	$(BIN)/python tests/mutants/mutants.py

simulate: setup ## SEEDS=200 worlds of referees, bots and faults in virtual time, or SEED=17 again
	PYTHONPATH=tests $(BIN)/python -m simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),40))

matches-needed: setup ## how many matches tell two bots apart: plain, duplicate, corrected by par; a quarter of an hour
	@$(BIN)/python tests/bench/matches_needed.py

soak: setup ## what takes longer than a test may
	$(BIN)/pytest -q -m slow

clean: ## the environment and all caches away; what was played and measured stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
