#!/bin/sh
# Installs policyengine and its locked dependencies into a new virtual environment: install.sh DIRECTORY
set -eu
cd "$(dirname "$0")/.."
${PYTHON:-python3} -m venv "$1"
"$1"/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes -r deploy/requirements.lock
"$1"/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --no-build-isolation .
"$1"/bin/python -m compileall -q "$1"/lib
"$1"/bin/policyengine --version
