"""`random()` for all nodes at once: the function table's generator on 64-bit columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyengine.compiler.columns.column import Column
from policyengine.language.functions.randomness import stream_of


def random_column(names: Sequence[Column], name_hash: NDArray[np.uint64]) -> Column:
    """Doubles in [0, 1): `names` are the pod's UID, the rule and the stream, one value each.

    `name_hash` is the node table's, whose bytes stand the other way round than those the generator starts from.
    """
    uid, rule, stream = (str(column.dictionary[int(column.values)]) for column in names if column.dictionary)
    seed = np.uint64(stream_of(uid, rule, stream))
    bits = _mixed(np.bitwise_xor(name_hash.byteswap(), seed)) >> np.uint64(11)
    return Column(bits.astype(np.float64) * 2.0**-53)


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64's finaliser; uint64 arithmetic wraps around as it wants."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
