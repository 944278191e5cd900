"""What one extender says counts as kube-scheduler would have it count, and only about what it was asked."""

import json
from typing import Any, cast

import msgspec
import pytest

from policyengine.kube.extenders.http_extender import ExtenderFailed, HttpExtender
from policyengine.kube.http.client import Transport
from policyengine.scheduler.actions import AskAboutVictims, NodeVictims
from tests.kube.extenders.extender_world import configured

POD = msgspec.Raw(b'{"metadata":{"name":"p"}}')
VICTIMS = {"a": NodeVictims(("u1",), 0), "b": NodeVictims(("u2",), 0)}
ASKED = AskAboutVictims("u", "ns", "p", 1, (0,), VICTIMS, {"a": {"u1": ("ns", "v1")}, "b": {"u2": ("ns", "v2")}})
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt"}


def extender(answer: Any, sent: list[bytes] | None = None, **given: Any) -> HttpExtender:
    """One that answers so, whatever it is asked."""
    (completed,) = configured({"urlPrefix": "http://e", "weight": 3, "nodeCacheCapable": True, **VERBS, **given})
    found = HttpExtender(completed, cast(Transport, object()))

    async def post(verb: str, body: bytes) -> bytes:
        if sent is not None:
            sent.append(body)
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    found.post = post  # type: ignore[method-assign]
    return found


def echo() -> HttpExtender:
    """One that answers with what it is sent."""
    found = extender({})

    async def post(verb: str, body: bytes) -> bytes:
        return body

    found.post = post  # type: ignore[method-assign]
    return found


def no_text(name: str, namespace: str = "") -> bytes | None:
    return None


async def test_a_node_that_is_left_out_was_refused_for_the_reason_given_if_there_is_one() -> None:
    answer = {
        "NodeNames": ["d", "a"],
        "FailedNodes": {"b": "full", "c": "not now"},
        "FailedAndUnresolvableNodes": {"c": "never", "a": "passed all the same"},
    }
    said = await extender(answer).filter(POD, ["a", "b", "c", "d", "e"], no_text)
    assert said.nodes == ["a", "d"], "in the order asked"
    assert said.refused == {
        "b": ("http://e", "full"),
        "e": ("http://e", "node(s) were refused by extender http://e"),
    }
    assert said.unresolvable == {"c": ("http://e", "never")}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"Error": "no idea"}, "no idea"),
        ({"NodeNames": 3}, "its answer is no ExtenderFilterResult"),
        ({"NodeNames": ["mars"]}, "it claims the node `mars`, which it was not asked about"),
    ],
)
async def test_an_answer_beside_the_question_is_a_failure(answer: Any, told: str) -> None:
    with pytest.raises(ExtenderFailed, match=told):
        await extender(answer).filter(POD, ["a"], no_text)


def test_the_core_is_told_what_it_manages_and_what_nobody_else_counts() -> None:
    managed = [{"name": "x.io/gpu", "ignoredByScheduler": True}, {"name": "x.io/fpga"}]
    found = extender({}, managedResources=managed).described()
    assert (found.resources, found.unchecked) == ({"x.io/gpu", "x.io/fpga"}, {"x.io/gpu"})


@pytest.mark.parametrize(("score", "counts"), [(0, 0), (7, 210), (10, 300), (11, 300), (-1, 0)])
async def test_a_score_from_0_to_10_counts_ten_times_its_weight(score: int, counts: int) -> None:
    said = await extender([{"Host": "a", "Score": score}]).prioritize(POD, ["a"], no_text)
    assert said == {"a": counts}


def leaving(**pods: list[str]) -> Any:
    named = {node: {"Pods": [{"UID": uid} for uid in uids]} for node, uids in pods.items()}
    return {"NodeNameToMetaVictims": named}


async def test_the_nodes_that_it_names_are_left_with_the_victims_that_it_names() -> None:
    said = await extender(leaving(b=["u2"])).victims(POD, VICTIMS, ASKED, no_text)
    assert said == {"b": NodeVictims(("u2",), 0)}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (leaving(mars=["u1"]), "it claims victims on the node `mars`, which it was not asked about"),
        (leaving(a=["u2"]), "it claims to preempt the pod `u2` on the node `a`, which is not there"),
        ({"NodeNameToMetaVictims": {"a": None}}, "expected at least one victim pod on node `a`"),
    ],
)
async def test_victims_beside_the_question_are_a_failure(answer: Any, told: str) -> None:
    with pytest.raises(ExtenderFailed, match=told):
        await extender(answer).victims(POD, VICTIMS, ASKED, no_text)


async def test_of_one_that_is_ignorable_a_node_without_victims_is_left_out() -> None:
    said = await extender(leaving(a=[], b=["u2"]), ignorable=True).victims(POD, VICTIMS, ASKED, no_text)
    assert list(said) == ["b"]


@pytest.mark.parametrize("cacheable", [True, False])
def test_who_keeps_no_cache_wants_what_its_verbs_are_about(cacheable: bool) -> None:
    every = extender({}, nodeCacheCapable=cacheable)
    assert (every.wants_nodes, every.wants_pods) == (not cacheable, not cacheable)
    binds = extender({}, nodeCacheCapable=cacheable, filterVerb="", prioritizeVerb="", preemptVerb="", bindVerb="bind")
    assert (binds.wants_nodes, binds.wants_pods) == (False, False)
