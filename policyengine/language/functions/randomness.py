"""`hash` and `random`: numbers that look random and are the same on every machine and in every replay.

`random` takes what it depends on as arguments, so the expression says what it reads: the pod's uid, the node's
name, the rule and the stream. It mixes two hashes (splitmix64's finaliser), which columns can do in one go.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from policyengine.language.functions.bounds import NOT_NEGATIVE, UNIT
from policyengine.language.functions.table import Cost, Function, Overload, Style, function
from policyengine.language.types import DOUBLE, INT, STRING

_MASK = 2**64 - 1


@lru_cache(maxsize=1 << 16)
def hash64(text: str) -> int:
    """BLAKE2b of the UTF-8 text, 8 bytes, little-endian: 0..2**64 - 1."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hash_string(text: str) -> int:
    """`hash(s)`: 0..2**63 - 1."""
    return hash64(text) >> 1


def mix(value: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014) on 64 bits."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def stream_of(uid: str, rule: str, stream: str) -> int:
    """What one rule's stream of random numbers starts from, for one pod: 0..2**64 - 1."""
    return hash64("\0".join((uid, rule, stream)))


def random(uid: str, node: str, rule: str, stream: str) -> float:
    """A double in [0, 1): the upper 53 bits of the mixed hashes of the stream and of the node's name."""
    return (mix(stream_of(uid, rule, stream) ^ hash64(node)) >> 11) * 2.0**-53


FUNCTIONS: tuple[Function, ...] = (
    function(
        "hash",
        Style.GLOBAL,
        "a number for a string, never negative, the same everywhere",
        Overload((STRING,), INT, hash_string),
        bounds=NOT_NEGATIVE,
        cost=Cost("draw", 20),
        mutants=[],
    ),
    function(
        "random",
        Style.GLOBAL,
        'a double in [0, 1) from pod UID, node and rule name; `random("b")` is another stream',
        Overload((STRING, STRING, STRING, STRING), DOUBLE, random),
        bounds=UNIT,
        cost=Cost("draw", 30),
        mutants=[],
    ),
)
