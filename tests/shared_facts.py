"""Recorded facts of real systems, which lie beside the checkout in `../shared`."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


def shared(path: str) -> Path:
    """The path of a recorded fact; skips the test, or the module at import, where it is absent."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"../shared/{path} is not beside this checkout", allow_module_level=True)
    return found
