"""Functions that are said to have a value whatever they are given have one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language.bounds import _COMPUTED, _TOTAL
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.table import substitute
from policyengine.language.types import INT, STRING
from tests.language.typed import values

_PATTERNS = st.sampled_from(["a", "^[a-z]+$", ""])


@pytest.mark.parametrize("name", sorted(_TOTAL))
@given(data=st.data())
@settings(max_examples=30)
def test_a_total_function_has_a_value(name: str, data: st.DataObject) -> None:
    row = FUNCTIONS[name]
    overload = data.draw(st.sampled_from([one for one in row.overloads if not one.dynamic]))
    types = [substitute(one, {"T": INT, "K": STRING, "V": INT}) for one in overload.parameters]
    arguments = [data.draw(_PATTERNS if number in row.literals else values(one)) for number, one in enumerate(types)]
    overload.implementation(*arguments)


def test_a_function_is_total_or_computed_at_most() -> None:
    assert not _TOTAL & _COMPUTED
    assert FUNCTIONS.keys() >= _TOTAL | _COMPUTED
