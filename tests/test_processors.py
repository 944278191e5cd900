"""Decisions do not depend on the processor: numpy and OpenBLAS choose other code, with other last bits, by what it has.

The runs pretend to have an older processor than this one: without AVX-512, and without AVX2 as well.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
NUMERIC = (
    "tests/test_golden.py::test_every_decision_agrees_with_kube_scheduler[spread]",
    "tests/compiler/lower/test_scalar.py::test_the_tree_evaluator_agrees[double]",
    "tests/compiler/lower/test_conformance_columns.py",
    "tests/policies/test_formulas.py::test_adaptive_bin_packing_is_how_far_the_spread_of_nodes_is_from_that_of_pods",
    "tests/benchmarks/test_page.py::test_the_growth_and_what_was_given_up_are_told",
)


def without(*families: str) -> dict[str, str]:
    """The environment in which numpy uses none of these families of instructions that this processor has."""
    core = np._core._multiarray_umath
    had = [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name] and name.startswith(families)]
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(had)}


@pytest.mark.parametrize(
    "environment",
    [
        without("X86_V4", "AVX512") | {"OPENBLAS_CORETYPE": "Haswell"},
        without("X86_V3", "X86_V4", "AVX", "FMA") | {"OPENBLAS_CORETYPE": "Nehalem"},
    ],
    ids=["without AVX-512", "without AVX2"],
)
def test_golden_decisions_and_formulas_hold_on_older_processors(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *NUMERIC],
        cwd=ROOT,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p no:xdist"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
