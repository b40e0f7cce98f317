# The two commands for a newcomer: `make demo` and `make test`. Each installs missing packages of the distribution,
# builds quietly, and does little on its second run.

PREFIX ?= /usr/local
CARGO ?= cargo
cargo = $(CARGO) --quiet
release = target/release
# Prints the name and the time of each step.
step = scripts/step
# The target directory, even if the user's settings name another.
override export CARGO_TARGET_DIR := $(CURDIR)/target

.PHONY: ovni-suite predictions check-aarch64 help test demo build install uninstall bench bench-record soak soak-clock soak-sample soak-record soak-input gates lint clean packages test-quick test-loaded

help:
	@echo "make test               install missing packages, build, run every test"
	@echo "make test-quick         unit tests, and integration tests of the crates that read and analyse (90 seconds after building)"
	@echo "make test-loaded RUNS=N run the tests that record, keep time or drive a browser N times (10) beside busy loops"
	@echo "make demo               install missing packages, build, record an example, print its report"
	@echo "make build              build the command and the recorder (release); debug information is in NAME.debug, installed as .debug/NAME.debug"
	@echo "make install PREFIX=P   build and install below P (now $(PREFIX))"
	@echo "make uninstall PREFIX=P remove the installed files below P"
	@echo "make bench              cost of recording, sampling and profiling five OpenMP programs, and of one sample (minutes, on an idle machine)"
	@echo "make bench-memory       memory and file of profile mode after 1, 10 and 60 seconds"
	@echo "make soak SECONDS=S     record, check and report the examples again and again"
	@echo "make predictions        what-if predictions beside real runs with 24 changes (minutes, on an idle machine)"
	@echo "make test-parts         parts of 10,000 random executions and graphs add up to the whole, in every table"
	@echo "make test-properties    all properties of analyses, on 10,000 random executions and graphs"
	@echo "make busy-machine       time without a CPU by the report beside the kernel's run_delay, on a loaded, pinned, limited machine (minutes)"
	@echo "make bench-causes       ledger, SLO, path of 0.1, 1, 10 M tasks (minutes and 4 GB, on an idle machine)"
	@echo "make bench-record       cost of one event, in every interface, beside its floor"
	@echo "make soak-clock SECONDS=S  compare the recorder's clock with the kernel's, in two processes"
	@echo "make bench-instrument   cost of instrumentation: off, push and pop, a switch of tasks, the tracing layer"
	@echo "make test-tokio-unstable  tokio's own task instrumentation, built with --cfg tokio_unstable"
	@echo "make soak-sample RUNS=N  run programs under samples at 1 kHz, 200 times, and compare their results"
	@echo "make soak-guest RUNS=N   run Go, Java, Python, musl programs and sanitizers N times in each mode (200), and compare with runs alone"
	@echo "make soak-threads RUNS=N  run programs that wait in every way N times under record --threads (200), and compare with runs alone"
	@echo "make soak-input SECONDS=S  read damaged files of every kind by every reader; print the number of inputs"
	@echo "make soak-record KILLS=N kill a recording program N times (10000), count missing events;"
	@echo "                        TASKSCOPE_TAIL_DIR=/dev/shm: also kill the process that stores its events"
	@echo "make bench-view         time in which the viewer opens, answers and draws, and the HTML report is written"
	@echo "make ovni-suite BUILD=DIR  ovni's own tests, of its cmake build in DIR, with taskscope's tools and library"
	@echo "make bench-device       cost of ordering device records"
	@echo "make soak-device        order 100 M device records twice; fails if memory grows"
	@echo "make check-aarch64      compile for aarch64 with Debian sid's toolchain (root, 500 MB), test where such programs run"
	@echo "make gates              instructions an event (valgrind)"
	@echo "make pic-table          the table of examples/pic: 1 x 16 and 4 x 16 workers on a slow link"
	@echo "make pic-trends         examples/pic with finer fragments, more nodes, a slower link"
	@echo "make test-tables        read exported tables in DuckDB, DataFusion, polars, pyarrow and pandas (installs them below target)"
	@echo "make query              build the engine of taskscope query (DataFusion: tens of minutes); make install QUERY=1 installs it"
	@echo "make test-query         queries of docs/sql in the engine of taskscope query, on tables of stored recordings"
	@echo "make lint-query         common mistakes in this engine (clippy; first time: minutes)"
	@echo "make test-cluster       the same queries on Ballista: a scheduler and executors on this machine, some of which are killed; an object"
	@echo "                        store; mutual TLS"
	@echo "make test-exports       open exports of stored recordings in Perfetto's trace processor, OTF2's reader, pj_dump, and compare counts and sums"
	@echo "make test-dask          record the tasks of a Dask cluster, import them (installs distributed below target)"
	@echo "make schemas            write docs/*.schema.json from the structures of the JSON documents"
	@echo "make test-axe TRACE=T   check the pages of a run for accessibility with axe-core (AFTER=T2: also comparison and history)"
	@echo "make lint               prose, formatting, clippy, documentation, modules of pages"
	@echo "make docs               the book in target/book; its links, and its commands (installs mdbook below target/tools: minutes)"
	@echo "make pictures           the pictures of docs/img, from new recordings (Chromium, Node, an idle machine)"
	@echo "make clean              remove all build results"

ovni-suite:
	@$(cargo) build -p taskscope -p taskscope-record-c
	@scripts/ovni-suite $(BUILD)

packages:
	@$(step) "install missing packages (first time: minutes)" scripts/install-packages

# For further builds of the recorder with other features: their tests see no times, and optimisation is most of the build.
small = --config profile.dev.package.taskscope-record.opt-level=0

test: packages
	@$(step) "install the browser for tests of pages" scripts/install-packages --browser
	@$(step) "remove what killed OpenMP programs left in /dev/shm" scripts/clear-killed
	@$(step) "build the tests (first time: several minutes)" $(cargo) test --workspace --no-run
	@$(step) "build the example programs" $(MAKE) --no-print-directory -s -C examples/openmp
	@$(step) "run the tests of all crates" $(CARGO) test --workspace --no-fail-fast $(if $(CI),,--quiet)
	@$(step) "run the test without instrumentation" $(CARGO) test -p taskscope-record $(small) --no-default-features --test without_instrumentation $(if $(CI),,--quiet)
	@$(step) "run the tests with tracing, tokio and rayon" $(CARGO) test -p taskscope-record $(small) --features tracing,tokio,rayon --test async_tasks $(if $(CI),,--quiet)
	@$(step) "run the tests of tokio's own instrumentation" $(MAKE) --no-print-directory -s test-tokio-unstable

# The engine of `taskscope query`, in a workspace of its own: DataFusion needs more time than all else together.
query_build = $(cargo) build --manifest-path query/Cargo.toml --target-dir target/query
.PHONY: query test-query lint-query
query:
	@$(step) "build the engine for SQL (first time: tens of minutes)" $(query_build) --release --locked
	@mkdir -p $(release)
	@install -m 755 target/query/release/taskscope-query $(release)/taskscope-query

# Common mistakes in it: clippy reads all of DataFusion first.
lint-query:
	@$(step) "lint the engine for SQL (first time: minutes)" $(cargo) clippy --manifest-path query/Cargo.toml --target-dir target/query \
		--locked --all-targets -- -D warnings

# Its tests, with tables of stored recordings.
test-query:
	@$(step) "build the command" $(cargo) build -p taskscope
	@$(step) "build the engine for SQL (first time: tens of minutes)" $(query_build) --locked
	@TASKSCOPE=$(CURDIR)/target/debug/taskscope $(step) "run the tests of the engine" \
		$(CARGO) test --manifest-path query/Cargo.toml --target-dir target/query --locked $(if $(CI),,--quiet)

# The same queries on Ballista's own scheduler and executors, installed below target/tools (tens of minutes).
ballista = target/tools/ballista-55.0.0
.PHONY: test-cluster
test-cluster:
	@$(step) "build the command" $(cargo) build -p taskscope
	@$(step) "build the engine for SQL (first time: tens of minutes)" $(query_build) --locked
	@[ -x $(ballista)/bin/ballista-executor ] || $(step) "install Ballista (first time: tens of minutes)" \
		env CARGO_TARGET_DIR=target/query $(cargo) install --debug --locked --root $(ballista) \
		ballista-scheduler@55.0.0 ballista-executor@55.0.0
	@[ -x target/object-store/bin/moto_server ] || { python3 -m venv target/object-store && \
		$(step) "install an object store" target/object-store/bin/pip install --quiet 'moto[server]==5.2.5'; }
	@rm -rf target/cluster target/cluster.tables
	@target/debug/taskscope export --to parquet -o target/cluster.tables $(wildcard crates/cli/tests/traces/*/) >/dev/null
	@TASKSCOPE_QUERY=$(CURDIR)/target/query/debug/taskscope-query scripts/test-cluster target/debug/taskscope \
		$(ballista) target/cluster target/cluster.tables

# Exports of stored recordings in programs that read them.
.PHONY: test-tables test-exports
test-exports: test-tables
	@$(step) "build the command" $(cargo) build -p taskscope
	@scripts/test-exports target/debug/taskscope

# Tasks of a Dask cluster.
.PHONY: test-dask
test-dask:
	@$(step) "build the command" $(cargo) build -p taskscope
	@scripts/test-dask target/debug/taskscope

# Tables of stored recordings in programs that read them; queries of docs/sql in two engines; the Python module.
test-tables:
	@$(step) "build the command" $(cargo) build -p taskscope
	@$(step) "install readers of tables" scripts/install-table-readers
	@rm -rf target/exported.tables
	@target/table-readers/bin/python scripts/test-tables target/debug/taskscope target/exported.tables $(wildcard crates/cli/tests/traces/*/)
	@target/hatchet/bin/python scripts/test-python-module target/debug/taskscope target/exported.tables \
		$(wildcard crates/cli/tests/traces/*/)

# The tests of the daily loop. They compile, record and start nothing but the command itself. All are selected in the whole
# workspace: with -p, Cargo gives other features to packages of others, and builds nearly everything again.
QUICK_TESTS = blame call_path_views causes_properties conservation graph_of_execution known_answers parts_add_up replay slo_cases \
	slo_properties golden interleavings restoring events_page imported_device_records neutral starpu compatibility_page file exhaustive \
	exhaustive_pair hazards model_views damage many_streams order stored_traces tables_page
QUICK_OF_VIEW = filters models page palette report runtime_pages server shown task_numbers timeline_text
QUICK_OF_COMMAND = architecture documents module_cycles vocabulary words
test-quick:
	@$(step) "build the quick tests" $(cargo) test --workspace --no-run
	@$(step) "run unit tests" $(CARGO) test --quiet --workspace --lib --bins --no-fail-fast
	@$(step) "run tests of readers, views and the command" $(CARGO) test --quiet --workspace --no-fail-fast \
		$(addprefix --test ,$(QUICK_TESTS) $(QUICK_OF_VIEW) $(QUICK_OF_COMMAND))

# Tests that record programs, keep time or drive a browser: their answers must not depend on the load of the machine.
LOADED_TESTS = all bad_programs blocked browser c_abi c_api call_path_names call_paths classic clock cpus cuda data_names \
	device_records diff docs_commands drain endings examples failures findings first_contact forks guests hangs hostile_files instrument \
	instrument_times interruption itt kokkos level_zero limits loops modes modules mpi mpi_hangs numbers nvtx opencl os_time pic \
	prepared_places profiles pti python record record_ovni server signals stopped thread_names thread_waits view wide_names
test-loaded: packages
	@scripts/clear-killed
	@TESTS="$(or $(TESTS),--workspace $(addprefix --test ,$(LOADED_TESTS)))" scripts/test-loaded $(or $(RUNS),10)

.PHONY: test-parts
test-parts:
	@TASKSCOPE_CASES=10000 $(CARGO) test -p taskscope-analysis --release --test parts_add_up

.PHONY: test-properties
test-properties:
	@TASKSCOPE_CASES=10000 $(CARGO) test -p taskscope-analysis --release --test parts_add_up --test slo_properties --test causes_properties --test replay

# tokio's own instrumentation is there only with this cfg, which builds all dependencies anew: a target of its own.
.PHONY: test-tokio-unstable
test-tokio-unstable:
	@RUSTFLAGS="$$RUSTFLAGS --cfg tokio_unstable" $(CARGO) test -p taskscope-record $(small) --features tracing,tokio,rayon,tokio/tracing \
		--test async_tasks --target-dir target/tokio-unstable $(if $(CI),,--quiet)

# Debug information goes to NAME.debug beside each file.
build:
	@$(step) "build the command and the recorders (first time: several minutes)" $(cargo) build --release -p taskscope -p taskscope-record-ompt -p taskscope-record-c -p taskscope-record-capi -p taskscope-record-device -p taskscope-record-mpi -p taskscope-record-threads
	@$(step) "move debug information to files of its own" scripts/split-debug $(release)/taskscope $(release)/*.so

demo: packages build
	@$(step) "build the example, record it, print its report" scripts/demo

# QUERY=1: with the engine for SQL.
install: build $(if $(QUERY),query)
	@$(step) "install below $(DESTDIR)$(PREFIX)" env DESTDIR="$(DESTDIR)" scripts/install "$(PREFIX)"

uninstall:
	@DESTDIR="$(DESTDIR)" scripts/install --uninstall "$(PREFIX)"

bench: packages
	@$(cargo) bench -p taskscope-record-ompt --bench overhead
	@$(cargo) bench -p taskscope-record-ompt --bench handler

soak: packages build
	@$(MAKE) --no-print-directory -s -C examples/openmp
	@scripts/soak $(SECONDS)

.PHONY: busy-machine
busy-machine: packages build
	@$(MAKE) --no-print-directory -s -C examples/openmp
	@scripts/busy-machine

.PHONY: bench-memory
bench-memory: packages build
	@scripts/profile-memory

bench-record: packages
	@scripts/bench-record

soak-clock:
	@$(cargo) run --release -q -p taskscope-record --example clock_soak -- $(SECONDS)

KILLS ?= 10000
soak-sample: packages
	@scripts/soak-sample $(or $(RUNS),200)

.PHONY: soak-guest
soak-guest: packages
	@scripts/soak-guest $(or $(RUNS),200)
.PHONY: soak-threads
soak-threads: packages
	@scripts/soak-threads $(or $(RUNS),200)

soak-record: packages
	@$(cargo) run --release -p taskscope-record --example kill_soak -- $(KILLS)

soak-input:
	@scripts/soak-input $(or $(SECONDS),1200)

check-aarch64:
	@scripts/check-aarch64

gates:
	@$(cargo) build --profile gates -p taskscope-record --example instructions
	@$(CARGO) test --quiet --profile gates -p taskscope-record --test instructions -- --nocapture

.PHONY: pic-table
pic-table: packages build
	@$(cargo) build --release -p taskscope-testkit --bin pic-table
	@scripts/pic-table

.PHONY: pic-trends
pic-trends: packages build
	@$(cargo) build --release -p taskscope-testkit --bin pic-table
	@scripts/pic-trends

# The pictures of docs/img, from recordings made now.
.PHONY: pictures
pictures: packages build
	@scripts/pictures

.PHONY: schemas
schemas:
	@UPDATE_SCHEMAS=1 $(cargo) test -p taskscope --bin taskscope schemas::

# Writes docs/causes.md from crates/cause/causes.toml.
.PHONY: causes-page
causes-page:
	@TASKSCOPE_WRITE_PAGES=1 $(cargo) test -q -p taskscope-view --lib the_page_and_the_schemas_have_the_vocabulary

lint: lint-web
	@scripts/prose
	@$(CARGO) fmt --all --check
	@$(CARGO) fmt --manifest-path query/Cargo.toml --check
	@$(cargo) clippy --workspace --all-targets -- -D warnings
	@RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(cargo) doc --workspace --no-deps --document-private-items

# Accessibility of the report, the viewer, comparisons and the history in each of their states (axe-core).
.PHONY: test-axe
test-axe:
	@scripts/test-axe $(TRACE) $(AFTER)

# The modules of pages: types by their comments, and what is most often wrong.
.PHONY: lint-web
lint-web:
	@scripts/lint-web

# The book of docs/. mdbook is installed below target/tools, once for each version.
MDBOOK_VERSION = 0.5.4
mdbook = target/tools/mdbook-$(MDBOOK_VERSION)/bin/mdbook

$(mdbook):
	@$(step) "install mdbook (first time: minutes)" env CARGO_TARGET_DIR=target/tools/build $(cargo) install --locked \
		--root $(dir $(@D)) --version $(MDBOOK_VERSION) --no-default-features --features search mdbook
	@rm -rf target/tools/build

.PHONY: docs
docs: packages $(mdbook)
	@$(step) "build the command" $(cargo) build -p taskscope
	@$(step) "build the book and check its links" scripts/book $(mdbook)
	@$(step) "run the commands of the book" $(cargo) test -p taskscope --test docs_commands
	@$(step) "parse the commands of all pages" $(cargo) test -p taskscope --bin taskscope documented

clean:
	@$(cargo) clean
	@$(MAKE) --no-print-directory -s -C examples/openmp clean

# Cost of ordering device records.
.PHONY: bench-device
bench-device:
	@$(cargo) run --release -p taskscope-reorder --example throughput

# A hundred million records in each order: what is held stays bounded, memory stays flat.
.PHONY: soak-device
soak-device:
	@$(cargo) run --release -p taskscope-reorder --example throughput -- 100 1024

# How fast the viewer opens, answers and draws, and the HTML report is made (minutes, on an idle machine).
.PHONY: bench-view
bench-view:
	@scripts/bench-view

# Cost of instrumenting a runtime.
.PHONY: bench-instrument
bench-instrument:
	@$(cargo) run --release -p taskscope-record --example instrument_cost
	@$(cargo) run --release -p taskscope-record --features tracing --example layer_cost

# Predictions of `report --section whatif` beside real runs of the changed program.
predictions: packages build
	scripts/predictions/run target/release/taskscope

# Cost of the analyses of causes: seconds and memory, at three sizes.
.PHONY: bench-causes
bench-causes:
	@$(cargo) bench -p taskscope-analysis --bench causes
