# All anyone needs: install, demo, test, check, bench. Each first makes .venv and installs what is missing.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.7
SOURCES := $(shell find src -name '*.py' -path '*/kaspar/*')

.PHONY: help install java demo test check compat-long chaos chaos-spark bench bench-spark lock generate clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 22

$(BIN)/uv:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed, and '$(PYTHON)' is not here."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; '$(PYTHON)' is older. Try: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@echo "installing uv"; $(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(VENV)/.installed: requirements.lock pyproject.toml setup.py src/kaspar/base/compiled_modules.txt $(addprefix src/,$(addsuffix .py,$(subst .,/,$(shell cat src/kaspar/base/compiled_modules.txt)))) | $(BIN)/uv
	@echo "installing the packages of requirements.lock"
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements.lock # Spark starts Python again and again
	@echo "installing kaspar and compiling its core"
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

install: $(VENV)/.installed ## Make .venv with everything in it

java: install ## Install Java for Spark, where that is allowed; otherwise say how
	@$(BIN)/python -m kaspar.spark.java --install

demo: install ## A broker, events, and a Spark query that counts them, with a live view (DEMO_SECONDS=n ends by itself)
	@$(BIN)/python -m kaspar.spark.java --install 2>/dev/null || true  # the demo says what is missing
	@$(BIN)/kaspar demo $(if $(DEMO_SECONDS),--seconds $(DEMO_SECONDS))

test: install ## Everything that proves the product
	@$(BIN)/python -m kaspar.spark.java --install || true  # tests that need it say so
	@$(BIN)/python -m tests.run

check: install ## Style, types and import rules
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

compat-long: install ## The long forms of tests/compat: kills, churn and rebalances through every client, for minutes (AGAINST=kafka)
	@KASPAR_COMPILED=1 $(BIN)/python -m pytest tests/compat --long --against $(or $(AGAINST),kaspar)

chaos-spark: install ## Exactly once under fire: drivers, executors, Python workers and brokers killed (CHAOS_ROUNDS=n, CHAOS_SEED=n)
	@KASPAR_COMPILED=1 CHAOS_ROUNDS=$(or $(CHAOS_ROUNDS),100) $(BIN)/python -m pytest tests/spark/chaos -s

chaos: install ## The long form of the kills and power cuts of tests/chaos (CHAOS_ROUNDS=n, CHAOS_SEED=n)
	@KASPAR_COMPILED=1 CHAOS_ROUNDS=$(or $(CHAOS_ROUNDS),100) $(BIN)/python -m pytest tests/chaos -s

bench: install ## The same load against Kaspar and Apache Kafka, with ratios
	@KASPAR_COMPILED=1 $(BIN)/python -m bench

bench-spark: install ## Our data source beside Spark's own connector, with ratios
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.spark $(BENCH_ARGUMENTS)

generate: install ## Write the generated files anew: messages from kio, reference pages from the declarations
	@$(BIN)/python scripts/generate_messages.py && $(BIN)/python scripts/generate_reference.py

lock: $(BIN)/uv ## Choose versions anew and pin them in requirements.lock
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --custom-compile-command "make lock" pyproject.toml --extra spark --group dev -o requirements.lock

clean: ## Remove what was built
	@rm -rf $(VENV) build src/*.egg-info; find src -name '*.so' -delete
