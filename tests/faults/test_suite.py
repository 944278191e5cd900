"""The suite about itself: its table, its auditor, its seeds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from policyengine.scheduler.state import SchedulerState
from tests.faults import auditor, facts, knowledge, last_look, mixed, table
from tests.faults.auditor import Auditor
from tests.faults.flapping import FIRST_SEED
from tests.faults.knowledge import Call
from tests.faults.soak import evaluated
from tests.scheduler import invariants
from tests.shared_facts import shared

SEEDS = Path(__file__).with_name("seeds.txt")
BLOCK = 5
STARTS = (
    *range(0, 60, BLOCK),
    *range(mixed.NEWEST, mixed.NEWEST + 20, BLOCK),
    *range(mixed.RESTORED, mixed.RESTORED + 20, BLOCK),
    *range(FIRST_SEED, FIRST_SEED + 10, BLOCK),
)


WITHOUT_A_SCENE = range(32, 40)
"""Faults that the list has since; a number leaves this range when its scene is written."""


def test_each_fault_has_a_test_or_is_known_to_have_none() -> None:
    assert list(dict.fromkeys(row.number for row in table.rows())) == sorted(table.FAULTS)
    lines = shared("faults.md").read_text(encoding="utf-8").splitlines()
    listed = {
        int(cells[1]): cells[2].strip()
        for line in lines
        if (cells := line.split("|"))[1:2] and cells[1].strip().isdigit()
    }
    assert set(listed) == {*table.FAULTS, *WITHOUT_A_SCENE}
    assert {number: listed[number] for number in table.FAULTS} == {n: name for n, (name, _) in table.FAULTS.items()}


def test_every_invariant_is_some_fault_s() -> None:
    assert {one for row in table.rows() for one in row.breaks.split()} == auditor.INVARIANTS


def test_the_page_has_the_table_of_the_tests() -> None:
    page = table.PAGE.read_text(encoding="utf-8")
    assert page == table.page_with_table(page), "run `python -m tests.faults.table`"


def test_the_auditor_imports_nothing_of_what_it_judges() -> None:
    imported = set()
    for part in (auditor, facts, knowledge, last_look):
        tree = ast.parse(Path(part.__file__).read_text(encoding="utf-8"))
        imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    parts = {f"tests.faults.{name}" for name in ("facts", "knowledge", "last_look")}
    assert imported <= parts | {
        "__future__",
        "collections",
        "collections.abc",
        "dataclasses",
        "fractions",
        "itertools",
        "typing",
    }


def test_a_call_that_should_not_have_been_sent_is_objected_to() -> None:
    """What the scenes cannot show: the auditor goes by the moment before, not by what comes with the call."""
    binding = {"metadata": {"name": "p", "uid": "u"}, "target": {"name": "n"}}
    call = Call("scheduler-a", "POST", "/api/v1/namespaces/default/pods/p/binding", binding)
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1"}}
    on_a_node = pod | {"spec": {"nodeName": "m", "containers": []}}
    node = {"metadata": {"name": "n", "uid": "v", "resourceVersion": "1"}, "spec": {}, "status": {"allocatable": {}}}
    shown = [(0.0, "shown", ("scheduler-a", "nodes", "ADDED", node))]
    early, late = Auditor(), Auditor()
    early.read([*shown, (1.0, "shown", ("scheduler-a", "pods", "ADDED", on_a_node)), (2.0, "sent", call)])
    late.read([*shown, (2.0, "shown", ("scheduler-a", "pods", "ADDED", on_a_node)), (2.0, "sent", call)])
    assert any(one.startswith("I1") for one in early.objections)
    assert not any(one.startswith("I1") for one in late.objections)


def listed(file: Path) -> list[int]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("start", STARTS)
def test_worlds_in_which_everything_goes_wrong_at_once(start: int) -> None:
    for seed in range(start, start + BLOCK):
        _, objections, timeline = evaluated(seed)
        assert not objections, f"seed {seed}\n{timeline}\n" + "\n".join(objections)


@pytest.mark.parametrize("seed", listed(SEEDS))
def test_a_seed_that_found_something_before(seed: int) -> None:
    _, objections, timeline = evaluated(seed)
    assert not objections, f"seed {seed}\n{timeline}\n" + "\n".join(objections)


def test_the_core_s_invariants_are_checked_after_every_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is broken ends the replica, which the auditor objects to."""
    checked: list[SchedulerState] = []
    validate = invariants.validate

    def counted(self: SchedulerState) -> None:
        checked.append(self)
        validate(self)

    monkeypatch.setattr(invariants, "validate", counted)
    objections, world = mixed.play_seed(2)
    assert not objections
    handled = {replica.name: len(replica.log) for replica in world.replicas}
    assert all(checked.count(replica.state) == handled[replica.name] for replica in world.replicas)

    def broken(self: SchedulerState) -> None:
        validate(self)
        assert len(self.view.pods) < 3, "too many pods"

    monkeypatch.setattr(invariants, "validate", broken)
    objections, _ = mixed.play_seed(2)
    assert any(one.startswith("I3") and "too many pods" in one for one in objections)


def test_a_seed_is_played_the_same_again() -> None:
    tapes = [[(at, what) for at, what, _ in mixed.play_seed(7)[1].tape] for _ in range(2)]
    assert tapes[0] == tapes[1]
