"""The function table: what every function and operator takes, gives and does, for single values.

One table for policies and for `policyengine.evaluate`. Columns are `compiler`'s; they must answer the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyengine.language.functions import (
    arithmetic,
    kubernetes,
    lookups,
    moments,
    numeric,
    optionals,
    probability,
    relations,
    text,
    type_conversions,
)
from policyengine.language.functions.table import Function, Overload, Style

_FAMILIES = (
    arithmetic,
    relations,
    lookups,
    type_conversions,
    kubernetes,
    moments,
    numeric,
    optionals,
    probability,
    text,
)

FUNCTIONS: Mapping[str, Function] = {row.name: row for family in _FAMILIES for row in family.FUNCTIONS}
"""Name -> function. Operators are named as in CEL: `_+_`, `-_`, `!_`, `@in`."""

__all__ = ["FUNCTIONS", "Function", "Overload", "Style"]
