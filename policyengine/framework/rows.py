"""Picking rows out of columns."""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.status import Rows

FEW: Final = 8
"""Up to so many rows are worked through one by one: calling numpy costs more than the arithmetic."""

T = TypeVar("T", bound=np.generic)


def at(column: NDArray[T], rows: Rows) -> NDArray[T]:
    """`column[rows]`; the column itself, not to be written to, where `rows` are all of them."""
    return column if len(rows) == len(column) else column[rows]
