# Every target first installs what it needs; `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FUZZ_SECONDS ?= 600
FUZZ := crates/loadgen/fuzz
SWEEP_ARGUMENTS ?= --rates 1000,2000,3000
RELEASE_TOOLS := target/release-tools
DOCS_TOOLS := target/docs-tools
AUDIT_TOOLS := $(CURDIR)/target/audit-tools
BENCH_ARGUMENTS ?=
PACKAGES := --package wsgiload-pybind --package loadgen --package refsrv
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock rustfmt.toml
# What no other test of a sweep's faults covers is in test_fault_matrix.
FAULT_MATRIX := $(patsubst %,tests/integration/test_%.py,fault_matrix full_disk memory_guard process_limit run_lock standard_streams)
export CARGO_TERM_COLOR ?= auto
# Chooses the cases of tests that would take too long with all of them.
export WSGILOAD_TEST_SEED ?= $(shell printf '%d' 0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0) 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help front-end schemas sweep simulate test test-all test-long test-vm fuzz fuzz-decoder check audit-dependencies build wheel release-check docs lock servers bench clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

sweep: build ## Measure the default servers and uWSGI at 1,000, 2,000 and 3,000 requests per second
	@tools/sweep $(BIN)/wsgiload sweep --servers default,uwsgi $(SWEEP_ARGUMENTS)

test: build ## Run the tests that need nothing but the build
	@echo "cases are chosen by WSGILOAD_TEST_SEED=$(WSGILOAD_TEST_SEED)"
	cargo test --release --locked --workspace --lib --bins --test layers --test allocations
	@# These tests measure nothing, so they may run on all cores.
	$(BIN)/pytest --numprocesses auto tests/unit tests/contract tests/truth/test_first_screen.py
	$(BIN)/pytest -m essential tests/integration tests/limits
	@echo "not run: real loads with every kind of server, browser, databases, fuzzing (make test-all); hours-long tests (make test-long); cgroup v2 and systemd (make test-vm)"

test-all: build frontend/node_modules/.installed ## Run all other tests, except the long ones (test-long) and those in virtual machines (test-vm)
	@echo "cases are chosen by WSGILOAD_TEST_SEED=$(WSGILOAD_TEST_SEED)"
	@# Tests skip what cannot be installed: a library for bjoern, a browser for the report pages, a database,
	@# and other load generators (their stored output is used instead).
	@tools/system-packages "$(PYTHON)" $$($(BIN)/python tools/server-packages bjoern) || true
	@command -v chromium >/dev/null 2>&1 || tools/system-packages "$(PYTHON)" chromium || true
	@for pair in wrk:wrk ab:apache2-utils httperf:httperf; do \
	  PATH="$$PATH:/usr/sbin" command -v "$${pair%%:*}" >/dev/null || tools/system-packages "$(PYTHON)" "$${pair#*:}" || true; done
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 || tools/system-packages "$(PYTHON)" postgresql || true
	cargo test --release --locked --workspace --test '*'
	npm --prefix frontend test --silent
	$(BIN)/pytest --numprocesses 2 --dist loadgroup -m "not essential and not alone" --ignore tests/unit --ignore tests/contract
	$(BIN)/pytest -m "alone and not essential" --ignore tests/unit --ignore tests/contract

simulate: build ## Race simulated servers, compare simulated sweeps, and search simulated capacities: how often the answers are right, about 15 minutes
	$(BIN)/python -m tests.simulated_races
	$(BIN)/python -m tests.simulated_sessions
	$(BIN)/python -m tests.simulated_capacity

fuzz: build fuzz-decoder ## Fuzz the file parsers, the HTTP/2 client and the response decoder, FUZZ_SECONDS (600) each; needs a C++ compiler
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

fuzz-decoder: ## Fuzz only the response decoder
	cargo fuzz --version >/dev/null 2>&1 || cargo install --locked --root target/fuzz-tools --version 0.13.2 cargo-fuzz
	$(PYTHON) $(FUZZ)/make_seeds.py $(FUZZ)/corpus/decoder
	PATH="$(CURDIR)/target/fuzz-tools/bin:$$PATH" RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir $(FUZZ) --target-dir target/fuzz \
	  decoder -- -dict=$(FUZZ)/decoder.dict -max_len=20000 -timeout=10 -rss_limit_mb=1024 -max_total_time=$(FUZZ_SECONDS)

test-long: build ## Run the kill table, the fault matrix, the full accuracy tests, all hostile servers and the soak test: about 95 minutes on a quiet host
	WSGILOAD_LONG_TESTS=1 $(BIN)/pytest -s tests/integration/test_kill_table.py
	WSGILOAD_LONG_TESTS=1 $(BIN)/pytest -s --durations 0 $(FAULT_MATRIX)
	WSGILOAD_LONG_TESTS=1 $(BIN)/pytest -s tests/integration/test_soak.py
	@tools/test-long

test-vm: build ## Test the limits under cgroup v2, as root and under systemd, in three emulated machines
	@tools/test-vm

check: build frontend/node_modules/.installed ## Check formatting, lints, types, crate docs, the extension's type stubs and the front end
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --workspace --no-deps --document-private-items
	$(BIN)/ruff format --check python servers tests tools bench studies examples docs
	$(BIN)/ruff check python servers tests tools bench studies examples docs
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest wsgiload._loadgen
	@# The stored script of the page must be what its sources produce.
	rm -rf target/stored-front-end && cp -r python/wsgiload/report/front_end target/stored-front-end
	$(MAKE) --no-print-directory front-end
	diff --recursive --brief target/stored-front-end python/wsgiload/report/front_end
	npm --prefix frontend run check --silent

audit-dependencies: $(VENV)/.installed ## Check licenses, sources and known vulnerabilities of all dependencies with cargo-deny and pip-audit
	PATH="$(AUDIT_TOOLS)/bin:$$PATH" cargo deny --version >/dev/null 2>&1 || \
	  cargo install --locked --root $(AUDIT_TOOLS) --version 0.20.2 cargo-deny
	$(BIN)/python tools/audit-dependencies

schemas: build ## Regenerate the types of plans, the JSON Schemas, and what docs/ says of options, keys, checks, alarms and fingerprints
	$(BIN)/python -m wsgiload.documents.generate .
	$(BIN)/python -m wsgiload.cli.reference .

build: $(VENV)/.built ## Build .venv with wsgiload, target/release/loadgen and target/release/refsrv

$(VENV)/.installed: requirements/locked.txt
	tools/system-packages "$(PYTHON)"
	$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/locked.txt
	touch $@

# One invocation, so that the extension and the programs share their dependencies.
$(VENV)/.built: $(VENV)/.installed $(RUST_SOURCES) pyproject.toml
	cargo build --release --locked $(PACKAGES)
	env -u CONDA_PREFIX VIRTUAL_ENV="$(CURDIR)/$(VENV)" PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin develop --release --locked --uv
	touch $@

# Node.js is needed to change or check the page's script, not to build wsgiload.
# Without install scripts: none of the packages needs one.
frontend/node_modules/.installed: frontend/package.json frontend/package-lock.json
	@command -v npm >/dev/null || tools/system-packages "$(PYTHON)" nodejs npm
	npm --prefix frontend ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

front-end: frontend/node_modules/.installed ## Build the script of the report page, which is stored in the repository
	npm --prefix frontend run build --silent

$(RELEASE_TOOLS)/.installed: requirements/release.txt
	"$(PYTHON)" -m venv --clear $(RELEASE_TOOLS)
	$(RELEASE_TOOLS)/bin/python -m pip install --quiet --require-hashes --requirement requirements/release.txt
	touch $@

release-check: build $(RELEASE_TOOLS)/.installed ## Build and check everything that a release uploads: sdist, wheels, programs
	$(RELEASE_TOOLS)/bin/python tools/release-check $(RELEASE_ARGUMENTS)

# Without a build: the Markdown and Sphinx are enough.
$(DOCS_TOOLS)/.installed: requirements/docs.txt
	"$(PYTHON)" -m venv --clear $(DOCS_TOOLS)
	$(DOCS_TOOLS)/bin/python -m pip install --quiet --require-hashes --requirement requirements/docs.txt
	touch $@

docs: $(DOCS_TOOLS)/.installed ## Build the documentation site into target/docs; a broken link is an error
	$(DOCS_TOOLS)/bin/sphinx-build --fresh-env --quiet --fail-on-warning --keep-going -d target/docs-cache docs target/docs

wheel: $(VENV)/.installed ## Build an installable wheel into dist/
	WSGILOAD_GIT_SHA="$$(git rev-parse HEAD 2>/dev/null)" $(BIN)/maturin build --profile distribution --locked --out dist

lock: $(VENV)/.installed ## Update all locked dependencies to their newest versions
	cargo update
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
	  --group dev pyproject.toml --output-file requirements/locked.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
	  --group release pyproject.toml --output-file requirements/release.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
	  --group docs pyproject.toml --output-file requirements/docs.txt
	$(BIN)/python tools/lock-servers
	npm --prefix frontend update --package-lock-only --ignore-scripts --no-audit --no-fund

bench: build ## Compare loadgen with other load generators (bench/install installs them); BENCH_ARGUMENTS=--quick for a short run
	cargo build --profile distribution --locked $(PACKAGES)
	cargo build --profile distribution --locked --package loadgen --example floor
	$(BIN)/python -m bench $(BENCH_ARGUMENTS)

servers: build ## Install every catalogue server with its system packages, and verify it
	tools/system-packages "$(PYTHON)" $$($(BIN)/python tools/server-packages)
	$(BIN)/wsgiload servers check --all $(CHECK_ARGUMENTS)

clean: ## Remove all build products; stored runs are kept
	rm -rf $(VENV) target dist frontend/node_modules frontend/build frontend/src/generated python/wsgiload/_loadgen*.so .pytest_cache .mypy_cache .ruff_cache
