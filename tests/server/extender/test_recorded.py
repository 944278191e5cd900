"""Every recorded request is understood, and answered in the shape that kube-scheduler accepted."""

from typing import Any

import pytest

from policyengine.server.extender.known_cluster import ExtenderCluster
from tests.server.extender.recorded import Known, ask, exchanges, recorded_nodes, verbs

CONGESTION = {
    node["metadata"]["name"]: int(node["metadata"].get("annotations", {}).get("congestion-factor", 0))
    for node in recorded_nodes()
}


def cluster_for(which: str) -> ExtenderCluster:
    return Known(recorded_nodes()) if which == "cap" else ExtenderCluster()


def asked(body: dict[str, Any]) -> list[str]:
    if body.get("NodeNames"):
        return list(body["NodeNames"])
    return [node["metadata"]["name"] for node in body["Nodes"]["items"]]


def score(node: str) -> int:
    return (2 * (2 * (100 - CONGESTION[node]) + 50) + 30) // 60


@pytest.mark.parametrize("which", ["cap", "full"])
async def test_every_request_is_answered_in_the_recorded_shape(which: str) -> None:
    answering = verbs(cluster_for(which))
    for exchange in exchanges(which):
        verb = exchange["request"]["path"].rpartition("/")[2]
        ours, theirs = await ask(answering, verb, exchange["request"]["body"]), exchange["response"]["body"]
        if verb == "prioritize":
            assert [entry.keys() for entry in ours] == [entry.keys() for entry in theirs]
        else:
            assert ours.keys() == theirs.keys()
            assert {key: type(value) for key, value in ours.items()} == {k: type(v) for k, v in theirs.items()}


@pytest.mark.parametrize("which", ["cap", "full"])
async def test_filter_and_prioritize_say_what_the_policy_says(which: str) -> None:
    answering = verbs(cluster_for(which))
    filtered = 0
    for exchange in exchanges(which):
        verb, body = exchange["request"]["path"].rpartition("/")[2], exchange["request"]["body"]
        if verb == "filter":
            answer = await ask(answering, verb, body)
            calm = [name for name in asked(body) if CONGESTION[name] < 80]
            if which == "full":
                assert answer["Nodes"]["items"] == [
                    node for node in body["Nodes"]["items"] if node["metadata"]["name"] in calm
                ]
            else:
                assert answer["NodeNames"] == calm
            refused = {name: f"quiet: congestion {CONGESTION[name]}" for name in asked(body) if name not in calm}
            assert answer["FailedAndUnresolvableNodes"] == refused and answer["FailedNodes"] == {}
            filtered += 1
        elif verb == "prioritize":
            assert await ask(answering, verb, body) == [{"Host": name, "Score": score(name)} for name in asked(body)]
    assert filtered >= 6


@pytest.mark.parametrize("which", ["cap", "full"])
async def test_preempt_keeps_the_nodes_that_the_rules_would_take(which: str) -> None:
    request = next(one["request"]["body"] for one in exchanges(which) if one["request"]["path"].endswith("/preempt"))
    sent = request["NodeNameToMetaVictims"] or request["NodeNameToVictims"]
    answering = verbs(Known(recorded_nodes()))
    kept = (await ask(answering, "preempt", request))["NodeNameToMetaVictims"]
    assert list(kept) == [name for name in sent if CONGESTION[name] < 80]
    for name, victims in kept.items():
        uids = [pod.get("UID") or pod["metadata"]["uid"] for pod in sent[name]["Pods"]]
        assert victims == {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
