# Everything runs in .venv, made from the package registries on first use.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WAV ?=
BEGUN := $(shell date +%s)
PYTEST_ARGS ?=

.PHONY: help demo test lint types coverage spec mutation fuzz soak bench-sim bench-bounds bench-recovery bench-resume bench-net bench-cpu compiled test-compiled interop build clean

help:
	@echo "make demo [WAV=file]  a call through a link that gets worse and better again; writes demo-out/"
	@echo "make test             lint, types, coverage of the wire layer, all tests"
	@echo "make lint             ruff and mypy"
	@echo "make spec             requirements, ids, quotations and citations of the specification; writes spec/coverage.md"
	@echo "make mutation [SAMPLE=n] [MUTATION=...]  faults put into the wire layer and the resume tokens: how many the tests find"
	@echo "make fuzz [INPUTS=n] [SEED=n]  hostile input in every state of client and server"
	@echo "make fuzz SECONDS=n [SEED=n]  the same and each decoder, guided by coverage (atheris)"
	@echo "make soak [SECONDS=n] [SEED=n]  twenty calls over paths that break: memory, tasks, descriptors, lag"
	@echo "make bench-sim [BENCH='--seeds 1-3 --traces DIR --jobs n CASE ...']  calls in virtual time beside their bars; writes bench-sim/"
	@echo "make bench-bounds [BOUNDS=--write]  what its short selection reaches, beside the bounds that the tests hold"
	@echo "make bench-recovery [RECOVERY='--seeds 1-3 --seconds 60']  what mends the losses, by tool, and its bars, in virtual time"
	@echo "make bench-resume [CASES=n] [COUNT=n] [SEED=n] [JOBS=n] [BREAKS='--real 100']  calls whose path breaks: named cases, at random, on sockets"
	@echo "make bench-net [ARGS=...]  calls over bad links beside aiortc and moq-rs, judged by ear (Linux, root; see interop/README.md)"
	@echo "make bench-cpu [CPU=...]  what a call costs a server, beside aiortc (Linux)"
	@echo "make interop [INTEROP='pairs --only voicestream']  conformance and pairs of implementations; writes interop-out/"
	@echo "make compiled         .venv-compiled: the package with its busiest modules compiled (needs a C compiler; some minutes)"
	@echo "make test-compiled    the tests of the lower layers and of calls in virtual time, on that"
	@echo "make build [COMPILE=1]  a wheel in dist/; with COMPILE=1 a compiled one"
	@echo "make clean            remove what the others made"

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed; name one with: make PYTHON=/path/to/python3.11"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,uvloop]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/voicestream demo --out demo-out --begun $(BEGUN) $(if $(WAV),--wav "$(WAV)")

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy

coverage: $(READY)
	$(BIN)/coverage run --branch --source=voicestream/wire -m pytest -q -p no:cacheprovider tests/unit/wire tests/unit/test_vectors.py tests/property/test_wire.py
	$(BIN)/coverage report --show-missing --fail-under=95

spec: $(READY)
	$(BIN)/python -m spec.tools

SAMPLE ?= 0
MUTATION ?=
mutation: $(READY)
	$(BIN)/python -m tests.mutation --sample $(SAMPLE) $(MUTATION)

# Tests run side by side, one process a core; a failure prints its seed all the same.
PYTEST_WORKERS ?= auto
test: lint coverage
	$(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --maxprocesses 4 --dist loadfile $(PYTEST_ARGS)

INPUTS ?= 200000
SEED ?= 1
# With SECONDS: guided by coverage, each decoder and session; what is found is kept where the tests take it. A fresh seed each time.
FUZZ_SEED = $(if $(filter command environment,$(firstword $(origin SEED))),--seed $(SEED))
fuzz: $(READY)
ifdef SECONDS
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]' \
		|| echo "atheris cannot be had here"
	$(BIN)/python -m voicestream.testing.fuzz_guided --seconds $(SECONDS) $(FUZZ_SEED) --keep tests/fuzz_inputs
else
	$(BIN)/python -m voicestream.testing.fuzz --inputs $(INPUTS) --seed $(SEED)
endif

soak: $(READY)
	$(BIN)/python -m voicestream.testing.soak --seconds $(or $(SECONDS),1800) --seed $(SEED)

BENCH ?=
bench-sim: $(READY)
	$(BIN)/python -m voicestream.testing.bench --json bench-sim/bench.json --page bench-sim/index.html $(BENCH)

bench-bounds: $(READY)
	$(BIN)/python -m voicestream.testing.bench.bounds tests/sim/bench_bounds.json $(BOUNDS)

bench-recovery: $(READY)
	$(BIN)/python -m voicestream.testing.recovery $(RECOVERY)

COUNT ?= 200
CASES ?= 3
JOBS ?= 2
BREAKS ?=
bench-resume: $(READY)
	$(BIN)/python -m voicestream.testing.breaks --cases $(CASES) --count $(COUNT) --seed $(SEED) --jobs $(JOBS) $(BREAKS)

# The laboratory has packages of its own (the other systems, the judges), so they stay out of .venv.
LAB := .venv-lab
ARGS ?=
$(LAB)/.ready: pyproject.toml
	"$(PYTHON)" -m venv $(LAB)
	$(LAB)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[lab,uvloop]'
	@touch $(LAB)/.ready

bench-net: $(LAB)/.ready
	$(LAB)/bin/python -m interop.lab.bench $(ARGS)

CPU ?=
bench-cpu: $(LAB)/.ready
	$(LAB)/bin/python -m interop.lab.load $(CPU)

INTEROP ?=
interop: $(READY)
	$(BIN)/python -m interop --out interop-out $(INTEROP)

# The same package, with what runs for each packet compiled; the repository comes last on its path, for the tests and the laboratory.
COMPILED := .venv-compiled
$(COMPILED)/.ready: pyproject.toml setup.py $(shell find voicestream -name '*.py' 2>/dev/null)
	"$(PYTHON)" -m venv $(COMPILED)
	VOICESTREAM_COMPILE=1 $(COMPILED)/bin/python -m pip install --quiet --disable-pip-version-check '.[dev,uvloop]'
	echo "$(CURDIR)" > "$$($(COMPILED)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/repository.pth"
	@touch $(COMPILED)/.ready

compiled: $(COMPILED)/.ready

test-compiled: $(COMPILED)/.ready
	$(COMPILED)/bin/pytest -q -p no:cacheprovider -n $(PYTEST_WORKERS) --maxprocesses 4 --dist loadfile tests/unit tests/property tests/sim $(PYTEST_ARGS)

COMPILE ?=
build: $(READY)
	VOICESTREAM_COMPILE=$(COMPILE) $(BIN)/python -m build --wheel --outdir dist .

clean:
	rm -rf $(VENV) $(LAB) $(COMPILED) build dist demo-out bench-sim interop-out .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
