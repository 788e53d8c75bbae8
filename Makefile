# All commands for development: install, demo, test, check, bench. Each first creates .venv and installs what is missing.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.7
SOURCES := $(shell find src -name '*.py' -path '*/kaspar/*')
CORE_LISTS := src/kaspar/base/compiled_modules.txt src/kaspar/base/inlined_modules.txt

.PHONY: help install java demo test test-quick test-long check sim compat-cluster chaos chaos-secured chaos-spark monitor-soak bench bench-cluster bench-console bench-registry bench-scale bench-security bench-spark bench-streams bench-tools bench-up wheel docs lock generate screenshots clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 22

$(BIN)/uv:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed, but '$(PYTHON)' was not found."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; '$(PYTHON)' is older. Try: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@echo "installing uv"; $(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(VENV)/.installed: requirements.lock pyproject.toml setup.py $(CORE_LISTS) $(addprefix src/,$(addsuffix .py,$(subst .,/,$(shell cat $(CORE_LISTS))))) | $(BIN)/uv
	@echo "installing the packages in requirements.lock"
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements.lock # Spark starts many Python processes
	@echo "installing kaspar and compiling its core"
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

install: $(VENV)/.installed ## Create .venv with all dependencies

java: install ## Install Java for Spark if possible; otherwise say how
	@$(BIN)/python -m kaspar.spark.running.java --install

demo: install ## Full demo: what kaspar up runs, events, two streams programs on Spark; prints the console's address (DEMO_SECONDS=n stops after n seconds)
	@$(BIN)/python -m kaspar.spark.running.java --install 2>/dev/null || true  # the demo says what is missing
	@$(BIN)/kaspar demo $(if $(DEMO_SECONDS),--seconds $(DEMO_SECONDS))

test: install ## The full test suite
	@$(BIN)/python -m kaspar.spark.running.java --install || true  # tests that need it say so
	@$(BIN)/python -m tests.run

test-quick: install ## The unit and property tests: a few minutes
	@$(BIN)/python -m tests.run --quick

test-long: install ## The long tests, and many rounds of kills: hours (CHAOS_ROUNDS=n, CHAOS_SEED=n)
	@$(BIN)/python -m kaspar.spark.running.java --install || true
	@$(BIN)/python -m tests.run --long

check: install ## Check style, types, import rules, and the documentation site
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/mkdocs build --strict

compat-cluster: install ## Stock clients against three brokers on ZooKeeper (make test runs some of them)
	@KASPAR_COMPILED=1 $(BIN)/python -m pytest tests/compat --against cluster

sim: install ## Simulated clusters with seeded faults (SEEDS=n how many, FIRST=n first seed; SEED=n one seed, with its trace)
	@KASPAR_COMPILED=1 $(BIN)/python -m tests.sim $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1))

chaos-spark: install ## Exactly once under kills: drivers, executors, Python workers and brokers killed (CHAOS_ROUNDS=n, CHAOS_SEED=n)
	@KASPAR_COMPILED=1 CHAOS_ROUNDS=$(or $(CHAOS_ROUNDS),100) $(BIN)/python -m pytest tests/spark/chaos -s

chaos-secured: install ## The fault tests with stock clients and Spark, over SASL_SSL with ACLs (CHAOS_ROUNDS=n, CHAOS_SEED=n)
	@KASPAR_COMPILED=1 $(BIN)/python -m tests.run --long "chaos, secured"

chaos: install ## Many rounds of the kills and power cuts in tests/chaos (CHAOS_ROUNDS=n, CHAOS_SEED=n)
	@KASPAR_COMPILED=1 CHAOS_ROUNDS=$(or $(CHAOS_ROUNDS),100) $(BIN)/python -m pytest tests/chaos -s

monitor-soak: install ## Ordinary load with rebalances, during which the monitor must report no problem; 6 minutes run as many rounds as an hour (MINUTES=n, SEED=n)
	@KASPAR_COMPILED=1 MONITOR_SOAK_MINUTES=$(or $(MINUTES),6) MONITOR_SOAK_SEED=$(or $(SEED),1) $(BIN)/python -m pytest --long -n0 tests/integration/monitor/test_soak.py

bench: install ## The same load against Kaspar and Apache Kafka, with ratios
	@KASPAR_COMPILED=1 $(BIN)/python -m bench

bench-cluster: install ## The same load against three brokers of Kaspar and of Apache Kafka, with ratios
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.cluster $(BENCH_ARGUMENTS)

bench-console: install ## The console's views in a browser, on a cluster with 10,000 topics, and the cost of open pages
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.console $(BENCH_ARGUMENTS)

bench-registry: install ## The schema registry compared with Apicurio's, with ratios, and the REST proxy
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.registry $(BENCH_ARGUMENTS)

bench-scale: install ## The controller with 100 brokers and 200,000 partitions: a few minutes
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.scale $(BENCH_ARGUMENTS)

bench-security: install ## The same load over TLS, with logins, ACLs and quotas, against Kaspar and Apache Kafka
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.security $(BENCH_ARGUMENTS)

bench-spark: install ## Our data source compared with Spark's own connector, with ratios
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.spark $(BENCH_ARGUMENTS)

bench-streams: install ## Streams programs compared with Kafka Streams, Quix Streams and Faust, with ratios
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.streams $(BENCH_ARGUMENTS)

bench-tools: install ## The start time of the commands compared with Kafka's own, with ratios
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.tools $(BENCH_ARGUMENTS)

bench-up: install ## The start time and idle cost of 'kaspar up'
	@KASPAR_COMPILED=1 $(BIN)/python -m bench.up $(BENCH_ARGUMENTS)

generate: install ## Regenerate the messages (from kio) and the reference pages (from the declarations)
	@$(BIN)/python scripts/generate_messages.py && $(BIN)/python -m scripts.generate_reference

wheel: install ## Build the source distribution, and from it a wheel with the compiled core, into dist/
	@rm -rf dist
	@$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist
	@test $$($(BIN)/python -m zipfile -l dist/*.whl | grep -c '\.so ') = $$(wc -w < src/kaspar/base/compiled_modules.txt) || { echo "The core was not compiled: is there a C compiler?"; exit 1; }
	@ls dist/*

docs: install ## Build the documentation site into site/; fails on a broken link or a page missing from nav
	@$(BIN)/mkdocs build --strict

lock: $(BIN)/uv ## Pin the dependencies in requirements.lock; pins that still fit are kept
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --custom-compile-command "make lock" pyproject.toml --extra tools --extra registry --extra rest --extra monitor --extra console --extra spark --extra streams --extra zookeeper --group dev --group docs -o requirements.lock

screenshots: install ## Screenshots of the console's views in docs/images/console
	@KASPAR_COMPILED=1 $(BIN)/python -m tests.browser.screenshots

clean: ## Remove what was built
	@rm -rf $(VENV) build dist site src/*.egg-info; find src -name '*.so' -delete
