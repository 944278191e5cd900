"""The generator of rules and histories leaves nothing of the language out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random

import pytest
from msgspec import Struct

from policyengine.language import syntax
from policyengine.language.checking.setting_checks import POINTS
from policyengine.language.functions import FUNCTIONS
from policyengine.language.parse import parse_file
from policyengine.language.schema import NODE, OBJECTS, ROOTS
from policyengine.language.types import Kind, list_of
from tests.fuzz.expression_writer import WRITTEN
from tests.fuzz.histories import policy_of
from tests.fuzz.policies import PolicyWriter
from tests.fuzz.vocabulary import EVERYTHING, reachable, readable


@pytest.fixture(scope="module")
def texts() -> str:
    """What is written of many rules; not all of it is checked."""
    found = []
    for seed in range(80):
        writer = PolicyWriter(Random(seed), depth=3)
        writer.rules(20)
        found += [writer.resolved(member.text, WRITTEN) for member in writer.members if len(member.text) < 4000]
    return "\n".join(found)


def test_every_field_of_the_schema_is_read() -> None:
    pending = {ROOTS[name].type for name in ROOTS}
    known: set[str] = set()
    while pending:
        of = pending.pop()
        things = {of, *of.args, *(inner for arg in of.args for inner in arg.args)}
        names = {one.name for one in things if one.kind is Kind.OBJECT} - known
        known |= names
        pending |= {inner for name in names for _, inner in reachable(name)}
    words = {word for name in known for path, _ in reachable(name) for word in re.findall(r"\w+", path)}
    fields = {(info.name, name) for info in OBJECTS.values() for name in info.fields}
    assert {field for field in fields if field[1] not in words and field[0] != "history"} == {("domain", "nodes")}
    assert any(text.endswith(").nodes") for text in readable(EVERYTHING.roots)[list_of(NODE)])


def test_every_function_is_called(texts: str) -> None:
    called = set(re.findall(r"(optional\.\w+|\w+)\(", texts))
    called |= {f"toQuantity/{name}" for name in re.findall(r"toQuantity\(.*?, (cpu|memory|storage)\)", texts)}
    functions = {name for name, function in FUNCTIONS.items() if not function.is_dynamic}
    operators = {name for name in functions if not name[0].isalpha()}
    assert functions - operators - called == {"history"}  # tests/compiler/test_history.py
    assert {name for name in operators if name.strip("_@") not in texts} == set()


WORDS = (
    *("missing first", "missing last", " asc", " desc", "normalize max =", "normalize minmax reverse", "on error"),
    *("guarantee:", "limit:", "borrow:", "delay:", "until:", "timeout:", "waits:"),
    *("victims:", "maxVictims:", "fair by"),
    *(f"on {point}" for point in POINTS),
)


def test_every_setting_is_written(texts: str) -> None:
    assert [word for word in WORDS if word not in texts] == []


NOT_WRITTEN = {"BytesLiteral", "UintLiteral", "Test", "TestStep", "GivenNode", "GivenPod", "GivenNow", "GivenParam"}
NOT_WRITTEN |= {"After", "ExpectOn", "ExpectBefore", "ExpectRejected", "ExpectWaits", "ExpectThat"}
"""What CEL has and the language not; tests of policies, which decide nothing."""
ABSTRACT = {"Node", "Expr", "Member", "Rule", "Block"}
OF_HISTORIES = {"Scheduler", "Share", "Use", "Disable"}
"""Written by `tests.fuzz.histories`."""


def test_every_construct_is_written() -> None:
    found: set[str] = set()
    for seed in range(20):
        writer = PolicyWriter(Random(seed))
        writer.rules(10)
        for source in writer.files():
            found |= kinds_in([parse_file(source)[0]])
    known = {name for name, kind in vars(syntax).items() if isinstance(kind, type) and issubclass(kind, syntax.Node)}
    assert known - found == ABSTRACT | NOT_WRITTEN | OF_HISTORIES


def test_every_setting_of_a_policy_is_written() -> None:
    found = [written for seed in range(10) if (written := policy_of(seed)) is not None]
    trees = [parse_file(source)[0] for one in found for source in one.sources]
    assert kinds_in(trees) >= OF_HISTORIES


def kinds_in(trees: Iterable[object]) -> set[str]:
    """The names of the classes of all nodes in some trees."""
    found, pending = set(), list(trees)
    while pending:
        one = pending.pop()
        if isinstance(one, tuple):
            pending += one
        elif isinstance(one, Struct):
            found.add(type(one).__name__)
            pending += [getattr(one, name) for name in one.__struct_fields__]
    return found
