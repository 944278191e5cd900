"""Equal immutable values kept once: what makes fifty thousand pods small.

Pools are bounded. A full pool starts anew: what is shared stays shared, only later values find no partner among
the earlier ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar, cast

H = TypeVar("H", bound=Hashable)

POOL_LIMIT = 1 << 14
_LARGE = 16
_EMPTY: dict[str, str] = {}
_maps: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
_values: dict[Hashable, Hashable] = {}


def interned(value: H) -> H:
    """The one value equal to this; only for values whose parts are of one type wherever they are equal."""
    if len(_values) >= POOL_LIMIT:
        _values.clear()
    return cast(H, _values.setdefault(value, value))


def interned_map(mapping: dict[str, str]) -> dict[str, str]:
    """The one dict with these entries in this order. Never written to. Large ones are not worth the search."""
    if not mapping:
        return _EMPTY
    if len(mapping) > _LARGE:
        return mapping
    if len(_maps) >= POOL_LIMIT:
        _maps.clear()
    return _maps.setdefault(tuple(mapping.items()), mapping)
