"""What is sent to extenders is what kube-scheduler sends; what is none of the protocol's answers is a failure."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.kube.extenders.http_extender import (
    ExtenderBindingResult,
    ExtenderFailed,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    HostPriorityList,
    as_sent,
)
from policyengine.scheduler.actions import AskAboutVictims, Bind, NodeVictims
from tests.kube.extenders.extender_world import NODES, shape, world
from tests.kube.extenders.test_http_extender import POD, echo, extender
from tests.shared_facts import shared


@pytest.mark.parametrize(("file", "cacheable"), [("extender-cap.json", True), ("extender-full.json", False)])
async def test_requests_have_the_shape_that_kube_scheduler_gives_them(file: str, cacheable: bool) -> None:
    recorded = json.loads(shared(f"recorded/{file}").read_text())
    theirs = {one["request"]["path"].rpartition("/")[2]: one["request"]["body"] for one in reversed(recorded)}

    def answer(verb: str, body: Any) -> Any:
        if verb == "prioritize":
            return []
        return {"Nodes": body["Nodes"], "NodeNames": body["NodeNames"], "FailedNodes": {}, "Error": ""}

    given = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": cacheable}
    async with world(answer, given) as at:
        await at.pod("p")
        await at.until_bound("p")
        for verb, body in at.asked:
            wanted = theirs[verb]
            assert list(body) == list(wanted) == ["Pod", "Nodes", "NodeNames"]
            assert shape(body["NodeNames"]) == shape(wanted["NodeNames"])
            ours, expected = body["Pod"], wanted["Pod"]
            assert ours.keys() == expected.keys()
            assert ours["metadata"].keys() <= expected["metadata"].keys() | {"annotations", "labels"}
            # Set by the admission of priorities, which the recorded server had not.
            assert ours["spec"].keys() - {"preemptionPolicy"} <= expected["spec"].keys()
            if not cacheable:
                assert body["Nodes"].keys() == wanted["Nodes"].keys()
                assert {"metadata", "spec", "status"} <= body["Nodes"]["items"][0].keys()
                assert [one["metadata"]["name"] for one in body["Nodes"]["items"]] == list(NODES)


def test_a_pod_is_sent_without_its_type_and_managed_fields() -> None:
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "managedFields": [{}]}, "spec": {"x": 1}}
    assert json.loads(bytes(as_sent(json.dumps(pod).encode()))) == {"metadata": {"name": "p"}, "spec": {"x": 1}}


@pytest.mark.parametrize("cacheable", [True, False])
async def test_victims_are_sent_by_uid_to_who_keeps_a_cache_else_whole_where_they_are_still_there(
    cacheable: bool,
) -> None:
    def text(name: str, namespace: str) -> bytes | None:
        return None if name == "gone" else f'{{"kind":"Pod","metadata":{{"uid":"{name}"}}}}'.encode()

    victims = {"b": NodeVictims(("u2",), 0), "a": NodeVictims(("u1", "gone"), 1)}
    pods = {node: {uid: ("ns", uid) for uid in one.pods} for node, one in victims.items()}
    asked, sent = AskAboutVictims("u", "ns", "p", 1, (0,), victims, pods), list[bytes]()
    one = extender({}, nodeCacheCapable=cacheable, sent=sent)
    await one.victims(POD, victims, asked, text)
    shown = [{"UID": "u1"}, {"UID": "gone"}] if cacheable else [{"metadata": {"uid": "u1"}}]
    last = {"UID": "u2"} if cacheable else {"metadata": {"uid": "u2"}}
    by_node = {
        "a": {"Pods": shown, "NumPDBViolations": 1},
        "b": {"Pods": [last], "NumPDBViolations": 0},
    }
    whole, short = (None, by_node) if cacheable else (by_node, None)
    assert json.loads(sent[0]) == {
        "Pod": {"metadata": {"name": "p"}},
        "NodeNameToVictims": whole,
        "NodeNameToMetaVictims": short,
    }


@pytest.mark.parametrize(
    ("answer", "by_name", "passed"),
    [
        ({"NodeNames": ["a"], "Nodes": {"items": [{"metadata": {"name": "b"}}]}}, True, ["a"]),
        ({"NodeNames": ["a"], "Nodes": {"items": [{"metadata": {"name": "b"}}]}}, False, ["b"]),
        ({"NodeNames": ["a"]}, False, ["a"]),
        ({"Nodes": {"items": [{"metadata": {"name": "b"}}]}}, True, ["b"]),
        ({"Nodes": {"items": None}}, False, []),
        ({}, True, []),
    ],
)
async def test_an_extender_answers_with_names_or_with_nodes(answer: Any, by_name: bool, passed: list[str]) -> None:
    one = extender(answer, nodeCacheCapable=by_name)
    assert (await one.filter(POD, ["a", "b"], lambda name, namespace: b"{}")).nodes == passed


async def test_a_binding_that_was_refused_was_not_made() -> None:
    bind = Bind("u", "ns", "p", "a", "hash")
    await extender({"Error": ""}, bindVerb="bind").bind(bind)
    with pytest.raises(ExtenderFailed, match="no room") as raised:
        await extender({"Error": "no room"}, bindVerb="bind").bind(bind)
    assert not raised.value.sent


KEYS = ["Nodes", "NodeNames", "items", "metadata", "name", "Host", "Score", "Error", "NodeNameToMetaVictims", "Pods"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=12,
)
ASKED = echo()
ANSWERS = (ExtenderFilterResult, HostPriorityList, ExtenderPreemptionResult, ExtenderBindingResult)


@given(body=st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_an_answer_or_a_failure(body: bytes) -> None:
    for answer in ANSWERS:
        asking = ASKED._ask("filterVerb", body, answer)
        with suppress(ExtenderFailed, StopIteration):
            asking.send(None)
            raise AssertionError("it waits for something")
