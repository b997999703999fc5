# Everything that this project does by command. `make help` lists it.

CARGO ?= cargo
DATA ?= ./plimsoll-data
RUNS ?= ./plimsoll-runs
# Where Cargo builds.
TARGET = $(or $(CARGO_TARGET_DIR),target)
PLIMSOLL = $(TARGET)/release/plimsoll
# What runs it where it is built for another kind of machine.
RUNNER =
# Where `make install` puts things; DESTDIR stands before it for whoever makes a package.
PREFIX ?= /usr/local
INSTALLED = $(DESTDIR)$(PREFIX)
BASH_COMPLETIONS = $(INSTALLED)/share/bash-completion/completions
ZSH_COMPLETIONS = $(INSTALLED)/share/zsh/site-functions
FISH_COMPLETIONS = $(INSTALLED)/share/fish/vendor_completions.d
MANUAL = $(INSTALLED)/share/man/man1
# Debian packages that tests and benchmarks compare with or drive.
TEST_PACKAGES = nftables fio prometheus bpftrace postgresql mariadb-server sysbench chromium iperf3 sockperf slurm-wlm openmpi-bin mpich \
	ansible-core pdsh nfs-ganesha nfs-ganesha-vfs minisign rpm skopeo
# Debian's PostgreSQL starts a server of its own unless told not to; tests start private ones.
NO_MAIN_CLUSTER = /etc/postgresql-common/createcluster.d/plimsoll.conf
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the release program, target/release/plimsoll (FEATURES=oracle-oci: for an installed Oracle client too)
	$(CARGO) build --release --locked $(if $(FEATURES),--features "$(FEATURES)")

# Installs what was built before, so that root builds nothing.
.PHONY: install
install: ## Install the program, man pages and completions below PREFIX=/usr/local (DESTDIR is honoured)
	@test -x $(PLIMSOLL) || { echo "error: $(PLIMSOLL) is not there" >&2; echo 'hint: run `make build` first' >&2; exit 2; }
	install -d "$(INSTALLED)/bin" "$(BASH_COMPLETIONS)" "$(ZSH_COMPLETIONS)" "$(FISH_COMPLETIONS)" "$(MANUAL)"
	install -m 755 $(PLIMSOLL) "$(INSTALLED)/bin/plimsoll"
	$(RUNNER) $(PLIMSOLL) completions bash >"$(BASH_COMPLETIONS)/plimsoll"
	$(RUNNER) $(PLIMSOLL) completions zsh >"$(ZSH_COMPLETIONS)/_plimsoll"
	$(RUNNER) $(PLIMSOLL) completions fish >"$(FISH_COMPLETIONS)/plimsoll.fish"
	$(RUNNER) $(PLIMSOLL) manual "$(MANUAL)"

# The time that it takes is that of a release build for another target; only what is missing is built again.
.PHONY: dist
dist: ## Build static programs for machines without Rust into dist/, as .tar.gz, .deb, .rpm and container image, and try them (MACHINES="x86_64 aarch64", MINISIGN_KEY=FILE signs)
	CARGO="$(CARGO)" MACHINES="$(MACHINES)" packaging/dist
	@$(MAKE) --no-print-directory test-dist

.PHONY: test-dist
test-dist: ## As root: use what is in dist/ in an empty root and in a bare Debian (wants debootstrap)
	@packaging/try || { code=$$?; [ $$code = 77 ] || exit $$code; }

.PHONY: uninstall
uninstall: ## Remove what `make install` put below PREFIX
	rm -f "$(INSTALLED)/bin/plimsoll" "$(BASH_COMPLETIONS)/plimsoll" "$(ZSH_COMPLETIONS)/_plimsoll" \
		"$(FISH_COMPLETIONS)/plimsoll.fish" "$(MANUAL)/plimsoll.1" "$(MANUAL)"/plimsoll-*.1

.PHONY: demo
demo: build ## Set up 1 GiB in ./plimsoll-data, sweep 1 to 32 sessions, show what was found
	$(PLIMSOLL) slob setup -s 1 SCALE=1G --target dir:$(DATA)
	$(PLIMSOLL) slob sweep -s 1 --threads 1,2,4,8,16,32 --target dir:$(DATA) --runs $(RUNS) \
		UPDATE_PCT=0 RUN_TIME=15 WORK_UNIT=64 --warmup 3s --cache 64M --tag demo=yes

# Checked once more by itself: features that only tests switch on must not be what makes the program build.
.PHONY: test
test: tools ## Format, lints, documentation and the whole test suite, with a summary of what failed and what was skipped
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	$(CARGO) check --locked --quiet
	CARGO="$(CARGO)" tests/run

# As root on Debian or Ubuntu, installs what is missing and nothing else; otherwise names it. A server is not on the PATH, and
# Debian starts MariaDB's unless a policy forbids it while it is installed.
POLICY = /usr/sbin/policy-rc.d
.PHONY: tools
tools:
	@found() { command -v $$1 || { [ $$1 = postgresql ] && ls /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres | grep .; } || \
		{ [ $$1 = nftables ] && command -v nft; } || \
		{ [ $$1 = slurm-wlm ] && command -v slurmd; } || { [ $$1 = openmpi-bin ] && command -v mpirun.openmpi; } || \
		{ [ $$1 = nfs-ganesha ] && command -v ganesha.nfsd; } || { [ $$1 = nfs-ganesha-vfs ] && ls /usr/lib/*/ganesha/libfsalvfs.so | grep .; } || \
		{ [ $$1 = mpich ] && command -v mpiexec.mpich; } || { [ $$1 = ansible-core ] && command -v ansible-playbook; } || { [ $$1 = mariadb-server ] && ls /usr/sbin/mariadbd /usr/sbin/mysqld /usr/libexec/mariadbd | grep .; }; }; \
	missing=; for tool in $(TEST_PACKAGES); do found $$tool >/dev/null 2>&1 || missing="$$missing $$tool"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		mkdir -p $(dir $(NO_MAIN_CLUSTER)) && echo 'create_main_cluster = false' >$(NO_MAIN_CLUSTER) && \
		trap 'rm -f $(NO_MAIN_CLUSTER); [ -z "$$ours" ] || rm -f $(POLICY)' EXIT && \
		ours= && { [ -e $(POLICY) ] || { printf '#!/bin/sh\nexit 101\n' >$(POLICY) && chmod 755 $(POLICY) && ours=yes; }; } && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq$$missing >/dev/null; \
	else echo "note: not installed:$$missing; tests that use it say that they were skipped" >&2; fi

# mdBook comes from crates.io once, into target/tools; nothing else of this project needs it.
MDBOOK_VERSION = 0.4.52
MDBOOK = target/tools/bin/mdbook
.PHONY: docs
docs: ## Build the book in target/book, searchable, and check its links, sizes and generated pages
	@$(MDBOOK) --version 2>/dev/null | grep -qF "$(MDBOOK_VERSION)" || \
		$(CARGO) install mdbook --version $(MDBOOK_VERSION) --locked --no-default-features --features search --root target/tools
	$(MDBOOK) build docs
	$(CARGO) test --locked --quiet --workspace --test readme
	$(CARGO) test --locked --quiet --workspace --lib -- docs_cli the_references_list docs_export the_documented_table docs_imports

.PHONY: bench
bench: build tools ## Measure the figures of dev/performance.md (about 90 minutes, wants an idle machine)
	$(CARGO) build --release --locked --examples
	failed=0; $(TARGET)/release/examples/figures ./plimsoll-bench || failed=$$?; $(CARGO) bench --locked || failed=$$?; exit $$failed

.PHONY: torture
torture: build ## As root: kill the engine at random moments for HOURS=1, find caps on a disk and in networks 20 times, plant causes
	PLIMSOLL_TORTURE_SECONDS=$$(( $${HOURS:-1} * 3600 )) $(CARGO) test --release --locked --test crash -- --nocapture
	PLIMSOLL_TORTURE_SECONDS=1 $(CARGO) test --release --locked --test throttle -- --nocapture --test-threads=1
	PLIMSOLL_TORTURE_SECONDS=1 $(CARGO) test --release --locked --test network -- --nocapture
	PLIMSOLL_TORTURE_SECONDS=1 $(CARGO) test --release --locked --test causes -- --nocapture --test-threads=1
	PLIMSOLL_TORTURE_SECONDS=1 $(CARGO) test --release --locked -p plimsoll-import --lib corpus_tests
	PLIMSOLL_TORTURE_SECONDS=1 $(CARGO) test --release --locked --test planted

# Coverage without a nightly toolchain: the compiler's own pass, and libFuzzer, which wants a C++ compiler.
FUZZ_FLAGS = -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions --cfg fuzzing
FUZZ_BINARIES = fuzz/target/$(shell rustc -vV | sed -n 's/^host: //p')/release

.PHONY: fuzz
fuzz: build ## Fuzz slob.conf, the wires of network tests and NFS and every importer (or KINDS="awr-text fio-json"), each for SECONDS=600 (wants g++)
	cd fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" $(CARGO) build --release --locked --target $$(rustc -vV | sed -n 's/^host: //p')
	mkdir -p fuzz/corpus/slob_conf fuzz/corpus/wire fuzz/corpus/nfs fuzz/artifacts
	$(FUZZ_BINARIES)/slob_conf -max_total_time=$${SECONDS:-600} -artifact_prefix=fuzz/artifacts/slob_conf- fuzz/corpus/slob_conf
	$(FUZZ_BINARIES)/wire -max_total_time=$${SECONDS:-600} -rss_limit_mb=2048 -artifact_prefix=fuzz/artifacts/wire- fuzz/corpus/wire
	$(FUZZ_BINARIES)/nfs -max_total_time=$${SECONDS:-600} -rss_limit_mb=2048 -artifact_prefix=fuzz/artifacts/nfs- fuzz/corpus/nfs
	for kind in $${KINDS:-$$($(PLIMSOLL) import --list | cut -d ' ' -f 1)}; do \
		mkdir -p fuzz/corpus/$$kind && \
		IMPORTER=$$kind $(FUZZ_BINARIES)/import -max_total_time=$${SECONDS:-600} -timeout=10 -rss_limit_mb=2048 \
			-artifact_prefix=fuzz/artifacts/$$kind- fuzz/corpus/$$kind $$(ls -d ../shared/corpus 2>/dev/null) || exit 1; \
	done

.PHONY: test-hostile
test-hostile: tools ## As root: the test suite on a slow disk, beside two busy processes, and on tmpfs (about an hour)
	CARGO="$(CARGO)" tests/hostile

.PHONY: test-oracle
test-oracle: ## The whole way on a real Oracle database: PLIMSOLL_ORACLE_URL=oracle://USER@HOST/SERVICE, and PLIMSOLL_ORACLE_PASSWORD
	$(CARGO) test --locked --test oracle -- --nocapture real::

# Nothing but these packages is installed; images and kernels stay in target/guests.
GUEST_PACKAGES = qemu-system-x86 qemu-system-arm qemu-utils mmdebstrap fakeroot kmod xz-utils zstd e2fsprogs binutils debian-archive-keyring
.PHONY: test-guests
test-guests: guest-tools build ## Try kernels 5.10, 6.1 and 6.12 and stacks of storage in guests of QEMU (THEMES="md lvm" KERNELS=6.1 TIMES=20; wants Debian)
	PLIMSOLL_GUEST_PROGRAM="$(abspath $(PLIMSOLL))" PLIMSOLL_GUEST_THEMES="$(THEMES)" PLIMSOLL_GUEST_KERNELS="$(KERNELS)" \
		PLIMSOLL_GUEST_TIMES="$(TIMES)" \
		PLIMSOLL_GUEST_ARM_PROGRAM="$(abspath $(wildcard $(TARGET)/aarch64-unknown-linux-musl/release/plimsoll.stripped))" \
		$(CARGO) test --workspace --locked --test guests -- --ignored --nocapture

.PHONY: guest-tools
guest-tools:
	@missing=$$(dpkg-query -W -f '$${db:Status-Abbrev} $${Package}\n' $(GUEST_PACKAGES) 2>&1 | sed -n 's/.*no packages found matching //p; s/^un *//p'); \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else echo "error: not installed: $$missing" >&2; echo 'hint: run `make guest-tools` as root once' >&2; exit 2; fi

.PHONY: clean-guests
clean-guests: ## Remove the images and kernels of `make test-guests`
	rm -rf "$(TARGET)/guests"

# Their programs come from Maven Central and Debian once, into target/servers.
.PHONY: test-servers
test-servers: ## The SQL tests on PostgreSQL 13 to 18, MariaDB 10.11 to 11.8 and MySQL 8.0 (wants mvn), or on the one in PLIMSOLL_PG_BIN or PLIMSOLL_MYSQL_BIN=DIR
	CARGO="$(CARGO)" tests/servers

# What checks a file for Kubernetes without a cluster comes from PyPI once, into target/fleet (108 MB of schemas).
.PHONY: test-fleet
test-fleet: tools ## Start parts by the launchers of examples/launch, and check the file for Kubernetes (wants Python with pip)
	[ -x target/fleet/bin/kubernetes-validate ] || { python3 -m venv target/fleet && target/fleet/bin/pip install -q kubernetes-validate; }
	$(CARGO) test --locked --test launchers -- --nocapture

# DuckDB comes from PyPI once, into target/queries.
.PHONY: test-queries
test-queries: ## Ask DuckDB the questions of examples/queries, of tables made of ../shared/corpus (wants Python with pip)
	CARGO="$(CARGO)" tests/queries

# The parsers come from Maven Central once, into target/plsql. As root on Debian or Ubuntu, what they need is installed.
.PHONY: check-plsql
check-plsql: ## Have parsers read all statements and blocks that are sent to Oracle, and planted faults (wants mvn, a JDK)
	@command -v mvn >/dev/null && command -v javac >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq maven default-jdk-headless >/dev/null; } || true
	CARGO="$(CARGO)" tests/plsql/check

.PHONY: clean
clean: ## Remove what was built; data and runs stay
	$(CARGO) clean
	rm -rf dist
