"""How far a search may go: `filterTimeout`, counted in looks at devices."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import build, in_tree_profile
from tests.builders import make_node
from tests.plugins.devices.devices import CANNOT, World, cel, claim, device, exactly, gpus, using

LATE = "node n0: timed out trying to allocate devices"


def world(timeout: str | None, *items: Any) -> World:
    made = World(*items, nodes=1)
    made.plugin = build("DynamicResources", {} if timeout is None else {"filterTimeout": timeout})
    made.evaluator = Evaluator(in_tree_profile("p", "s", "", {"DynamicResources": (made.plugin, None)}))
    return made


def hopeless(groups: int) -> list[Any]:
    """Three devices of one group are wanted twice; each group has four and a half of them, so to speak."""
    devices = [device(f"g{number}", group=number % groups) for number in range(5 * groups)]
    requests = [exactly(f"r{number}", count=3) for number in range(2)]
    constraints = [{"matchAttribute": "gpu.example/group"}]
    return [gpus(*devices), claim(*requests, constraints=constraints)]


@pytest.mark.parametrize(
    ("timeout", "groups", "answer"),
    [("10ms", 6, LATE), ("0s", 6, CANNOT), (None, 2, CANNOT), (None, 60, LATE)],
)
def test_a_search_that_leads_nowhere_is_given_up_in_time(timeout: str | None, groups: int, answer: str) -> None:
    assert world(timeout, *hopeless(groups)).evaluate() == {"n0": answer}


def test_a_search_that_goes_straight_is_never_given_up() -> None:
    names = [f"g{number}" for number in range(128)]
    assert world("1ns", gpus(*names), claim(exactly(count=32))).fits() == ["n0"]


def test_too_few_devices_are_noticed_before_any_is_tried() -> None:
    names = [f"g{number}" for number in range(30)]
    assert world("1ns", gpus(*names), claim(exactly(count=31))).evaluate() == {"n0": CANNOT}


def test_a_search_that_was_given_up_is_an_error_and_so_tried_again() -> None:
    made = world("10ms", *hopeless(6))
    assert made.evaluate() == {"n0": LATE}
    devices = [device(f"g{number}", group=0) for number in range(6)]
    made.see(gpus(*devices, version=2))
    assert made.fits() == ["n0"]


# --- all nodes together --------------------------------------------------------------------------------------


NODES = 20


def unlike_nodes(timeout: str) -> World:
    """Each node has devices unlike those of the others, and is searched in vain for long; the last one has what is
    wanted."""
    made = world(timeout, *hopeless(2))
    for number in range(NODES):
        name, enough = f"n{number}", number == NODES - 1
        made.view.add_or_update_node(make_node(name).build())
        devices = [device(f"g{one}", group=one % 2, serial=f"{name}-{one}") for one in range(12 if enough else 10)]
        made.see(gpus(*devices, node=name, version=2))
    requests = [exactly(f"r{one}", count=3, selectors=[cel(f'{OWN}.serial != ""')]) for one in range(2)]
    made.see(claim(*requests, version=2, constraints=[{"matchAttribute": "gpu.example/group"}]))
    return made


OWN = 'device.attributes["gpu.example"]'


def test_a_pod_does_not_have_every_node_searched_at_once_and_comes_further_each_time() -> None:
    made, patient = unlike_nodes("30ms"), unlike_nodes("0s")
    wanted = {f"n{number}": CANNOT for number in range(NODES - 1)} | {f"n{NODES - 1}": ""}
    assert patient.evaluate() == wanted
    answers = [made.evaluate() for _ in range(NODES)]
    late = [sum(str(reason).startswith("node n") for reason in dict(answer).values()) for answer in answers]
    assert late == sorted(late, reverse=True)
    assert late[0] > NODES // 2, "the first attempt leaves most nodes for later"
    assert late[0] > late[1] > 0, "the next one goes on where it ended"
    assert answers[-1] == wanted
    assert made.evaluate() == wanted


def test_nodes_that_are_left_for_later_are_no_answer_of_another_pod() -> None:
    made = unlike_nodes("30ms")
    made.evaluate()
    made.see(claim(exactly("r"), name="modest"))
    assert len(made.fits(using("modest"))) == NODES


@pytest.mark.parametrize("rounds", ["[1]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"])
def test_what_a_selector_takes_counts_once_a_device(rounds: str) -> None:
    names = [f"g{number}" for number in range(128)]
    selector = cel(f"{rounds}.all(one, one > 0)")
    assert world("100ms", gpus(*names), claim(exactly(count=32, selectors=[selector]))).fits() == ["n0"]


def test_selectors_of_many_rounds_count_also_where_the_search_goes_straight() -> None:
    many = f"[{', '.join(['1'] * 100)}]"
    selector = cel(f"{many}.all(a, {many}.all(b, {OWN}.serial != ''))")
    devices = [device(f"g{number}", serial=f"s{number}") for number in range(16)]
    wanted = claim(exactly(count=16, selectors=[selector]))
    assert world("0s", gpus(*devices), wanted).fits() == ["n0"]
    assert world(None, gpus(*devices), wanted).evaluate() == {"n0": LATE}


def test_a_selector_that_would_run_for_seconds_has_no_answer() -> None:
    many = f"[{', '.join(['1'] * 100)}]"
    selector = cel(f"{many}.all(a, {many}.all(b, {many}.all(c, true)))")
    made = world("0s", gpus("g0"), claim(exactly(selectors=[selector])))
    assert made.evaluate() == {
        "n0": "claim default/c: selector #0: CEL runtime error: the expression takes too many steps"
    }
