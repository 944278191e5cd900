"""What is sent to extenders is what kube-scheduler sends; what is none of the protocol's answers is a failure."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.kube.extenders import protocol
from policyengine.kube.extenders.protocol import ExtenderFailed
from policyengine.scheduler.actions import NodeVictims
from tests.kube.extenders.extender_world import NODES, shape, world
from tests.shared_facts import shared

POD = msgspec.Raw(b'{"metadata":{"name":"p"}}')
VICTIMS = {"b": NodeVictims(("u2",), 0), "a": NodeVictims(("u1", "gone"), 1)}


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
    assert json.loads(bytes(protocol.as_sent(json.dumps(pod).encode()))) == {
        "metadata": {"name": "p"},
        "spec": {"x": 1},
    }


def test_victims_are_sent_by_uid_to_who_keeps_a_cache() -> None:
    assert json.loads(protocol.preemption_args_of_uids(POD, VICTIMS)) == {
        "Pod": {"metadata": {"name": "p"}},
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {
            "a": {"Pods": [{"UID": "u1"}, {"UID": "gone"}], "NumPDBViolations": 1},
            "b": {"Pods": [{"UID": "u2"}], "NumPDBViolations": 0},
        },
    }


def test_victims_that_have_gone_meanwhile_are_not_sent_whole() -> None:
    def text(name: str, namespace: str) -> bytes | None:
        return None if name == "gone" else f'{{"kind":"Pod","metadata":{{"uid":"{name}"}}}}'.encode()

    names = {node: {uid: ("ns", uid) for uid in one.pods} for node, one in VICTIMS.items()}
    assert json.loads(protocol.preemption_args_of_pods(POD, VICTIMS, names, text)) == {
        "Pod": {"metadata": {"name": "p"}},
        "NodeNameToVictims": {
            "a": {"Pods": [{"metadata": {"uid": "u1"}}], "NumPDBViolations": 1},
            "b": {"Pods": [{"metadata": {"uid": "u2"}}], "NumPDBViolations": 0},
        },
        "NodeNameToMetaVictims": None,
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
def test_an_extender_answers_with_names_or_with_nodes(answer: Any, by_name: bool, passed: list[str]) -> None:
    assert protocol.filter_result(json.dumps(answer).encode()).passed(by_name=by_name) == passed


def test_a_binding_that_was_refused_was_not_made() -> None:
    protocol.binding_result(b'{"Error": ""}')
    with pytest.raises(ExtenderFailed, match="no room") as raised:
        protocol.binding_result(b'{"Error": "no room"}')
    assert not raised.value.sent


READERS = (protocol.filter_result, protocol.priorities, protocol.preemption_result, protocol.binding_result)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "Nodes",
                    "NodeNames",
                    "items",
                    "metadata",
                    "name",
                    "Host",
                    "Score",
                    "Error",
                    "NodeNameToMetaVictims",
                    "Pods",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@given(body=st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_an_answer_or_a_failure(read: Callable[[bytes], object], body: bytes) -> None:
    try:
        read(body)
    except ExtenderFailed as error:
        assert str(error)
