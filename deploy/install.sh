#!/bin/sh
# Installs policyengine and its locked dependencies into a new virtual environment: install.sh DIRECTORY
set -eu
cd "$(dirname "$0")/.."
${PYTHON:-python3} -m venv "$1"
"$1"/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r deploy/requirements.lock
"$1"/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .
"$1"/bin/python -m compileall -q "$1"/lib
bin=$(cd "$1/bin" && pwd)
work=$(mktemp -d)
cd "$work" # outside the checkout: what is not installed is missed
"$bin"/policyengine new policy first
"$bin"/policyengine test first.policy
cd /
rm -r "$work"
