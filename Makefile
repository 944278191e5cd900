# make demo   sets everything up, shows a policy at work, ends by itself
# make test   sets everything up, runs every check
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup system web demo test lint types contracts unit image policies ratios bench bench-quick bench-perf bench-beside bench-page \
        record fuzz soak attacks tuning ray release lock format clean

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "policyengine needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps --no-compile --require-hashes -r requirements.lock # which is whole; most of it is never imported
	$(PIP) --no-deps --no-build-isolation -e .
	touch $(STAMP)

# What the pages run in a browser: bundled from packages that npm checks by their hashes; nothing of it is committed.
# Without it the pages can be read, and the playground says what it lacks.
BUILT := policyengine/server/pages/static/built
web: $(BUILT)/hashes.json

$(BUILT)/hashes.json: web/package-lock.json web/.npmrc web/build.js $(wildcard web/src/*)
	@if ! command -v npm >/dev/null; then echo "npm is not installed; the pages have no playground and no pictures"; \
	elif ! (cd web && npm ci --silent && npm run --silent build); then echo "npm cannot build the playground: see above"; fi

demo: setup
	$(BIN)/policyengine demo

# The tests of what these packages bring skip themselves without them.
PACKAGES := prometheus chromium
system:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { $(PACKAGES:%=command -v % && ) :; } >/dev/null; then \
	  (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $(PACKAGES)) \
	    >/dev/null 2>&1 || echo "$(PACKAGES) cannot be installed; tests that need them are skipped"; fi

# What needs one processor each runs side by side, what sets things up too; then what needs them all, or none beside it.
test: system
	$(MAKE) -j2 web lint types contracts policies image
	$(MAKE) ratios unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports --no-cache

# One more than processors: many tests wait for leases, processes and servers.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
unit: setup
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

policies: setup # every branch of every policy that comes along is seen by its tests
	$(BIN)/policyengine test --coverage --fail-under 100 policies

image: setup web # what deploy/Dockerfile installs, in a virtual environment of its own
	sh deploy/install.sh build/image

# A few seconds of decisions as ratios within the run, beside those that were kept. It tells and never fails: machines are
# noisy. `python -m benchmarks ratios --save FILE` keeps them anew.
RATIOS := benchmarks/ratios.json
ratios: setup
	@$(BIN)/python -m benchmarks ratios --compare $(RATIOS) --threshold 0.5 || echo "a ratio grew by more than half, or nothing was measured: see above"

# What docs/performance.md shows: on a machine that does nothing else. Each command is bounded; one that fails is told and
# the page is made of the others. Minutes on 2 cores stand behind them.
RESULTS ?= build/benchmarks.json
RUNS    ?= 3
PEERS   := peer-basic peer-mixed peer-spread peer-affinity peer-antiaffinity peer-nodeaffinity
ALIKE   := peer-spread-mixed peer-affinity-mixed peer-antiaffinity-mixed
KEPT     = --save $(RESULTS) || echo "not measured"
BENCH   := $(BIN)/python -m benchmarks

bench: bench-quick bench-beside bench-page

bench-quick: setup # about 15 minutes
	mkdir -p $(dir $(RESULTS))
	timeout 120 $(BENCH) language $(KEPT) # 0.5
	timeout 300 $(BENCH) reload $(KEPT) # 0.3
	timeout 900 $(BENCH) plan $(KEPT) # 3
	timeout 1800 $(BENCH) tuning $(KEPT) # 5
	timeout 600 $(BENCH) recording $(KEPT) # 1
	timeout 300 $(BENCH) devices $(KEPT) # 0.2
	timeout 300 $(BENCH) queue $(KEPT) # 1
	timeout 600 $(BENCH) server --runs 3 $(KEPT) # 1.5
	timeout 300 $(BENCH) extender $(KEPT) # 1
	timeout 300 $(BENCH) pages $(KEPT) # 1.5
	timeout 120 $(BENCH) ratios $(KEPT) # 0.2
	for one in $(PEERS) $(ALIKE); do timeout 180 $(BENCH) decisions $$one $(KEPT); done # 1.5
	timeout 180 $(BENCH) decisions peer-mixed --policy policies/riya.policy $(KEPT) # 0.3
	timeout 180 $(BENCH) memory --nodes 5000 --pods 50000 $(KEPT) # 0.2
	timeout 300 $(BENCH) memory peer-mixed --nodes 15000 --pods 150000 $(KEPT) # 0.4
	timeout 1500 $(BENCH) scale $(KEPT) # 2.5
	timeout 300 $(BENCH) limit $(KEPT) # 0.7
	for one in $(PEERS); do timeout 600 $(BENCH) $$one $(KEPT); done # 5
	timeout 300 $(BENCH) peer-basic --schedulers 2 $(KEPT) # 1

# scheduler_perf's workloads by name, at its sizes, pods created during the run as it does; about 20 minutes.
PERF := SchedulingBasic NodeAffinity PodAntiAffinity PodAffinity PreferredPodAffinity TopologySpreading \
        MixedSchedulingBasePod PreemptionAsync Unschedulable MixedChurn Gang Daemonset
bench-perf: setup
	mkdir -p $(dir $(RESULTS))
	for one in $(PERF); do timeout 600 $(BENCH) $$one --create during --no-limit $(KEPT); done

# Needs KUBEBUILDER_ASSETS with etcd, kube-apiserver and kube-scheduler. RUNS of ours and of kube-scheduler in turn, at the
# sizes kube-scheduler was recorded at; kube-scheduler alone places these pods in 200 s a run.
bench-beside: setup # about 25 minutes
	mkdir -p $(dir $(RESULTS))
	for one in $(PEERS); do \
	  timeout 900 $(BENCH) $$one --apiserver envtest --beside kube-scheduler --no-limit --runs $(RUNS) $(KEPT); done

bench-page: setup
	$(BENCH) page --from $(RESULTS) --plots docs/performance > build/performance.md
	mv build/performance.md docs/performance.md

OUT  ?= build/recording.json
BASE ?= tests/record/recordings/kube-apiserver-1.36.2.json
record: setup   # KUBECONFIG=… of an API server that may be thrown away; ETCD=URL, OUT, BASE, ORIGINAL=--original
	$(BIN)/python -m tests.record record --kubeconfig "$(KUBECONFIG)" --etcd "$(ETCD)" --out $(OUT) $(ORIGINAL)
	$(BIN)/python -m tests.record compare $(BASE) $(OUT)

SEEDS ?= 1000
START ?= 0
soak: setup     # SEEDS worlds full of faults, from seed START on; docs/reliability.md
	$(BIN)/python -m tests.faults.soak $(SEEDS) $(START)
	$(BIN)/python -m tests.faults.churn 24

ATTACKED ?= 300
attacks: setup  # ATTACKED seconds of each attack on processes of ours, on a machine that does nothing else; docs/reliability.md
	$(BIN)/python -m tests.attacks $(ATTACKED)

OPENB ?= openb
tuning: setup   # the worked example of docs/tuning.md; OPENB: the folder of the traces; RAY=local: on Ray; 10 minutes on 2 cores
	$(BIN)/python -m benchmarks.tuning $(OPENB) $(if $(RAY),--ray $(RAY))

ray: setup      # the same values found on a local Ray, one of whose workers is killed; on a machine that does nothing else
	$(BIN)/pip install -q ray
	$(BIN)/pytest -q tests/tuning/test_session.py -k ray

SECONDS ?= 120
GUIDED  ?= front-end webhook extender endpoints kubeconfig configuration scenario suite dump manifest scheduling-policy convert
fuzz: setup     # SECONDS each: what is GUIDED by atheris, where that is installed; 100,000 rules and 5,000 histories; 500 days of plans; 10,000 policies for lint and its fixes
	for one in $(GUIDED); do $(BIN)/python -m tests.fuzz.guided $$one $(SECONDS) || exit 1; done
	$(BIN)/python -m tests.fuzz.worst_texts $(SECONDS)
	$(BIN)/python -m tests.fuzz.seeds rules 100000
	$(BIN)/python -m tests.fuzz.seeds histories 5000
	$(BIN)/python -m tests.fuzz.seeds planned 500
	$(BIN)/python -m tests.fuzz.seeds lint_proofs 10000
	$(BIN)/python -m tests.fuzz.seeds fixes 10000
	EVERY_RIGHT=1 $(BIN)/pytest -q tests/deploy/test_rights.py
	$(BIN)/python -m tests.trials.test_finding_examples

release: image  # dist/: sdist and wheel, what the image installs as CycloneDX, and what made them as SLSA provenance
	rm -rf dist
	$(BIN)/hatchling build -d dist
	$(BIN)/cyclonedx-py environment build/image --pyproject pyproject.toml --output-reproducible -o dist/sbom.cdx.json
	$(BIN)/python deploy/provenance.py dist

lock:           # needs uv; the lock names no index, so it works with whichever one you use
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate -o requirements.lock
	uv pip compile pyproject.toml --extra tracing --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate -o deploy/requirements.lock
	printf '%s\n' statsmodels scipy pandas patsy packaging formulaic interface-meta narwhals wrapt | \
	  uv pip compile - --no-deps --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements.lock -o deploy/forecast.lock
	printf 'hatchling>=1.27\nlark>=1.2\n' | uv pip compile - --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate -o deploy/build.lock

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(BUILT) web/node_modules build dist .mypy_cache .ruff_cache .hypothesis
