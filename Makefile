# Two commands for users: `make demo` and `make test`. Both can be run again and install nothing twice: a stamp in .venv
# is older than the file that names the packages, or it is not.

# 3.11 comes first because the pinned training stack is checked on it; any Python from 3.11 on runs the core. The
# candidates are run, not looked up: a shim can exist for a version that is not installed.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CORE := $(VENV)/core.stamp
DEV := $(VENV)/dev.stamp
STACK := $(VENV)/training-cpu.stamp

PYTEST := env TRACEINSIGHT_REQUIRE_TORCH=1 $(BIN)/python -m pytest

.PHONY: demo test browser
.DEFAULT_GOAL := demo

demo: $(CORE)  ## analyse the sample traces; needs no torch
	@$(BIN)/traceinsight analyze sample_traces/late_rank

# Times of real runs come first and by themselves: two runs at once on two cores would measure each other.
# A failed check does not hide the ones behind it: all of them run, and the failed ones are named at the end.
test: $(DEV) $(STACK) browser  ## lint, types, import floors and every test
	@failed=; \
	check() { name="$$1"; shift; echo "==> $$name"; "$$@" || failed="$$failed [$$name]"; }; \
	check "ruff check" $(BIN)/ruff check --quiet .; \
	check "ruff format" $(BIN)/ruff format --quiet --check .; \
	check "mypy" $(BIN)/mypy; \
	check "import floors" $(BIN)/lint-imports; \
	check "pytest, times of real runs" $(PYTEST) -m measured; \
	check "pytest" $(PYTEST) -m "not measured" -n 2 --dist loadfile; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

$(CORE): pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: no Python from 3.11 on was found; name one with make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "==> installing the core into $(VENV) ($$($(PYTHON) --version))"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(DEV): $(CORE)
	@echo "==> installing the development tools"
	@$(PIP) --editable '.[dev,dashboard]'
	@touch $@

# pip reports that torchrec misses fbgemm-gpu; requirements-cpu-nodeps.txt says why that is right here.
$(STACK): $(CORE) training/requirements-cpu.txt training/requirements-cpu-nodeps.txt
	@echo "==> installing PyTorch, FBGEMM and TorchRec for CPU (about 250 MB the first time)"
	@$(PIP) --requirement training/requirements-cpu.txt || { echo "error: if pip did not find PyTorch's CPU build, \
	name the index that holds it (PyTorch's page 'Start Locally' does, for CPU) in PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS" >&2; exit 1; }
	@$(PIP) --no-deps --requirement training/requirements-cpu-nodeps.txt
	@touch $@

# The dashboard's tests drive the system's browser. Without one they are skipped, and in CI they fail.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		echo "==> installing Chromium for the dashboard's tests"; \
		test "$$(id -u)" = 0 && apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	} || echo "note: no Chromium could be installed here; install the package chromium to test the dashboard in it"
