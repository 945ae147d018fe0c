PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup proto
setup: .venv/ready ## one command from a fresh clone to everything below

.venv/ready: pyproject.toml proto/build_stubs.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable ".[server,embedded,dev]"
	touch $@

proto: ## after editing a .proto file
	$(BIN)/python proto/build_stubs.py
