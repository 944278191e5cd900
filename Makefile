# make demo   sets everything up, shows a policy at work, ends by itself
# make test   sets everything up, runs every check
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup system demo test lint types contracts unit image policies record fuzz soak lock format clean

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "policyengine needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: setup
	$(BIN)/policyengine demo

# The tests of what these packages bring skip themselves without them.
PACKAGES := prometheus valgrind
system:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { command -v prometheus && command -v valgrind; } >/dev/null; then \
	  (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $(PACKAGES)) \
	    >/dev/null 2>&1 || echo "$(PACKAGES) cannot be installed; tests that need them are skipped"; fi

test: system lint types contracts policies image unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports --no-cache

unit: setup
	$(BIN)/pytest -n auto

policies: setup # every branch of every policy that comes along is seen by its tests
	$(BIN)/policyengine test --coverage --fail-under 100 policies

image: setup    # what deploy/Dockerfile installs, in a virtual environment of its own
	sh deploy/install.sh build/image

OUT  ?= build/recording.json
BASE ?= tests/record/recordings/kube-apiserver-1.36.2.json
record: setup   # KUBECONFIG=… of an API server that may be thrown away; ETCD=URL, OUT, BASE, SCRIPTS
	$(BIN)/python -m tests.record record --kubeconfig "$(KUBECONFIG)" --etcd "$(ETCD)" --out $(OUT) $(SCRIPTS)
	$(BIN)/python -m tests.record compare $(BASE) $(OUT)

SEEDS ?= 1000
START ?= 0
soak: setup     # SEEDS worlds full of faults, from seed START on; docs/reliability.md
	$(BIN)/python -m tests.faults.soak $(SEEDS) $(START)
	$(BIN)/python -m tests.faults.churn 24

SECONDS ?= 120
fuzz: setup     # the front end of the language, for SECONDS, where atheris is installed
	$(BIN)/python -m tests.fuzz.front_end $(SECONDS)

lock:           # needs uv; the lock names no index, so it works with whichever one you use
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate -o requirements.lock
	uv pip compile pyproject.toml --extra image --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate -o deploy/requirements.lock

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
