# Everything happens in .venv, which is made from python3 alone. `make` says what there is.

VENV ?= .venv
ARGS ?=
SERVER ?= vllm
# One for each core, but four at most: each takes some seconds to import all tests before it runs the first.
WORKERS ?= auto
IN_VENV := $(VENV)/bin

.DEFAULT_GOAL := help
# `app` and `dev` ask each time whether all is installed: the checkout may have moved, or PYTHON name another one.
.PHONY: app dev help run setup test test-full test-versions soak test-peers check format snapshots \
	screenshots pictures real-model real-server clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: app ## start ladechat (options in ARGS="…")
	@$(IN_VENV)/python -P -m ladechat $(ARGS)

setup: app ## install what the app needs into .venv

test: dev ## run the tests
	$(IN_VENV)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist worksteal $(ARGS)

test-full: dev real-model ## run the tests, the long counts included
	@tools/chromium.sh
	$(IN_VENV)/python -m tools.real_server vllm --only-install
	@tools/sshd.sh
	$(IN_VENV)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist worksteal -m "" --timeout 3600 $(ARGS)
	@$(MAKE) test-versions

test-versions: dev ## run the tests of models and of generate with the lowest, the pinned and the newest versions
	$(IN_VENV)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist worksteal tests/generate tests/model
	$(IN_VENV)/python -m tools.versions lowest newest -n $(WORKERS) --maxprocesses 4 --dist worksteal

test-peers: dev ## run somebody's tests of generate in DIR=folder, every call made twice
	@test -d "$(DIR)" || { echo 'Say whose tests: make test-peers DIR=path/to/transformers/tests/generation, in a whole'; \
		echo 'checkout of the version that is installed here; its tests also need: pip install parameterized datasets'; exit 2; }
	cd "$(DIR)" && PYTHONPATH=$(CURDIR)/tests/peers $(abspath $(IN_VENV))/python -P -m pytest -p generate_twice \
		-c $(CURDIR)/tests/peers/peers.ini --rootdir . $(ARGS) .

soak: dev ## chat with the engine for an hour, then in the app: memory, open files, exactness (LADECHAT_SOAK_MINUTES)
	LADECHAT_SOAK_MINUTES=$${LADECHAT_SOAK_MINUTES:-55} $(IN_VENV)/python -m pytest -n 0 -s -m "" tests/engine/test_soak.py tests/app/test_soak.py $(ARGS)

check: dev ## lint, format, types, import contracts and plain words
	$(IN_VENV)/ruff check
	$(IN_VENV)/ruff format --check
	$(IN_VENV)/mypy
	$(IN_VENV)/lint-imports
	$(IN_VENV)/python -m tools.plain_words

format: dev ## put the code into its format
	$(IN_VENV)/ruff check --fix --select I
	$(IN_VENV)/ruff format

snapshots: dev ## write the pictures the tests compare with anew
	$(IN_VENV)/python -m pytest -m "" --snapshot-update -k snapshot $(ARGS)

screenshots: dev ## take the pictures in docs/ anew, of the running app
	$(IN_VENV)/python tools/screenshots.py

pictures: dev ## make what moves in docs/ anew: a race, the window at work, and both pages that play
	$(IN_VENV)/python -P tools/pictures.py

real-model: dev ## fetch real models for benchmarks and test-full; the last line printed is the folder of the chat model
	@$(IN_VENV)/python -m tools.gemma_model build/real-model
	@$(IN_VENV)/python -m tools.real_model build/real-model

real-server: dev real-model ## start vLLM with the real model on loopback, or SERVER=llama.cpp (options in ARGS="…")
	@$(IN_VENV)/python -m tools.real_server $(SERVER) $(ARGS)

clean: ## remove .venv and everything else that was made
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache snapshot_report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

app dev:
	@tools/setup_venv.sh $(VENV) $@
