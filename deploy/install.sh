#!/bin/sh
# Installs policyengine and its locked dependencies into a new virtual environment: install.sh DIRECTORY [EXTRA]
# EXTRA: `forecast`, for what the annotator forecasts with.
# What installs and builds stays outside it.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${PYTHON:-python3} -m venv "$work/build"
pip="$work/build/bin/python -m pip --quiet --disable-pip-version-check"
$pip install --require-hashes -r deploy/build.lock
"$work/build/bin/hatchling" build -t wheel -d "$work/dist"
${PYTHON:-python3} -m venv --clear --without-pip "$1"
$pip --python "$1"/bin/python install --no-compile --require-hashes -r deploy/requirements.lock ${2:+-r "deploy/$2.lock"}
$pip --python "$1"/bin/python install --no-compile --no-deps "$work"/dist/*.whl
rm -rf "$1"/lib/python3*/site-packages/kubernetes/aio # 36 MB, of which we import nothing
"$1"/bin/python -m compileall -q "$1"/lib
bin=$(cd "$1/bin" && pwd)
cd "$work" # outside the checkout: what is not installed is missed
"$bin"/policyengine new policy first
"$bin"/policyengine test first.policy
"$bin"/policyengine demo
