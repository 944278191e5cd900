# make demo   sets everything up, shows a policy at work, ends by itself
# make test   sets everything up, runs every check
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup demo test lint types contracts unit record lock format clean

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "policyengine needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: setup
	$(BIN)/policyengine demo

test: lint types contracts unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports --no-cache

unit: setup
	$(BIN)/pytest -n auto

OUT  ?= build/recording.json
BASE ?= tests/record/recordings/kube-apiserver-1.36.2.json
record: setup   # KUBECONFIG=… of an API server that may be thrown away; ETCD=URL, OUT, BASE, SCRIPTS
	$(BIN)/python -m tests.record record --kubeconfig "$(KUBECONFIG)" --etcd "$(ETCD)" --out $(OUT) $(SCRIPTS)
	$(BIN)/python -m tests.record compare $(BASE) $(OUT)

lock:           # needs uv; the lock names no index, so it works with whichever one you use
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate -o requirements.lock

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
