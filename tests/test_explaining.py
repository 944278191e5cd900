"""`policyengine.explain`, as a script uses it."""

from datetime import UTC, datetime
from typing import Any

import pytest

import policyengine
from tests.builders import make_node, make_pod

CLUSTER = {
    "nodes": [make_node(name).capacity(cpu="4", memory="8Gi", pods="10").json() for name in ("a", "b")],
    "pending": [make_pod("p").req(cpu="1").json()],
}


def test_without_a_policy_the_in_tree_plugins_answer() -> None:
    [entry] = policyengine.explain(CLUSTER, alone=True)
    assert entry["pod"] == "default/p" and set(entry["total"]) == {"a", "b"}


def test_a_policy_answers_for_itself() -> None:
    [entry] = policyengine.explain(CLUSTER, 'policy "x" { filter "not-a" { require node.name != "a" } }', alone=True)
    assert entry["rejected"]["a"]["plugin"] == "not-a" and entry["chosen"] == "b"


def test_a_broken_policy_is_told_with_its_place() -> None:
    with pytest.raises(policyengine.PolicyError, match="PE1002"):
        policyengine.explain(CLUSTER, 'policy "x" { filter "f" { require node.nane == "a" } }')


def test_a_compiled_policy_answers_as_its_text_does() -> None:
    text = 'policy "x" { filter "not-a" { require node.name != "a" } }'
    assert policyengine.explain(CLUSTER, policyengine.compile_policy(text)) == policyengine.explain(CLUSTER, text)


AT_NIGHT = 'policy "x" { filter "at-night" { require now.getHours() < 6 else "by day" } }'


def test_now_is_the_moment_that_is_given() -> None:
    [night] = policyengine.explain(CLUSTER, AT_NIGHT, alone=True, now=datetime(2026, 1, 5, 3, tzinfo=UTC))
    [day] = policyengine.explain(CLUSTER, AT_NIGHT, alone=True, now=datetime(2026, 1, 5, 13, tzinfo=UTC))
    assert night["chosen"] is not None and day["chosen"] is None


def test_pods_that_ended_within_the_hour_before_now_are_seen() -> None:
    terminated = {"terminated": {"exitCode": 1, "finishedAt": "2026-01-05T03:00:00Z"}}
    ended = (
        make_pod("done")
        .node("a")
        .phase("Failed")
        .set("status.containerStatuses", [{"name": "c", "state": terminated}])
        .json()
    )
    text = 'policy "x" { filter "calm" { require node.finished.size() == 0 } }'
    soon, late = (datetime(2026, 1, 5, hour, 30, tzinfo=UTC) for hour in (3, 4))
    [entry] = policyengine.explain({**CLUSTER, "pods": [ended]}, text, alone=True, now=soon)
    assert set(entry["rejected"]) == {"a"}
    [entry] = policyengine.explain({**CLUSTER, "pods": [ended]}, text, alone=True, now=late)
    assert entry["rejected"] == {}


def test_without_one_now_is_the_clock() -> None:
    [entry] = policyengine.explain(
        CLUSTER, 'policy "x" { filter "old" { require now.getFullYear() < 2024 else "{now}" } }', alone=True
    )
    told = datetime.fromisoformat(entry["preFilter"]["reasons"][0])
    assert abs((datetime.now(UTC) - told).total_seconds()) < 600


@pytest.mark.parametrize(
    ("api", "spec", "names"),
    [
        ("scheduling.x-k8s.io/v1alpha1", {"minMember": 3}, {"labels": {"scheduling.x-k8s.io/pod-group": "crew"}}),
        ("scheduling.k8s.io/v1alpha2", {"schedulingPolicy": {"gang": {"minCount": 3}}}, {}),
    ],
)
def test_a_pod_knows_the_group_that_the_dump_holds(api: str, spec: dict[str, Any], names: dict[str, Any]) -> None:
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": "crew", "namespace": "default"}, "spec": spec}
    member = make_pod("p").req(cpu="1").json()
    member["metadata"].update(names)
    member["spec"]["schedulingGroup"] = {} if names else {"podGroupName": "crew"}
    policy = 'policy "x" { filter "three" { require podGroup.?minMember.orValue(0) == 3 else "no group" } }'
    listed = [{"kind": "Node", **node} for node in CLUSTER["nodes"]] + [{"kind": "Pod", **member}, group]
    for cluster in ({**CLUSTER, "pending": [member], "podGroups": [group]}, {"kind": "List", "items": listed}):
        [entry] = policyengine.explain(cluster, policy, alone=True)
        assert entry["chosen"] in ("a", "b"), entry


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        policyengine.explain(CLUSTER, now=datetime(2026, 1, 5))


def test_the_forecast_takes_room_from_pod_to_pod() -> None:
    small = {"nodes": [make_node("a").capacity(cpu="1", memory="8Gi", pods="10").json()]}
    first, second = policyengine.explain({**small, "pending": [make_pod(name).req(cpu="1").json() for name in "pq"]})
    assert (first["outcome"], first["node"], first["after"]) == ("bound", "a", 0.0)
    assert second["outcome"] == "unschedulable" and second["message"].startswith("0/1 nodes are available")


def test_a_policy_among_the_objects_serves() -> None:
    text = 'policy "x" { scheduler "x" filter "never" { require false else "not today" } }'
    labels = {"policyengine.io/policy": "true"}
    config_map = {"kind": "ConfigMap", "metadata": {"name": "x", "labels": labels}, "data": {"x.policy": text}}
    items = [*CLUSTER["nodes"], make_pod("p").scheduler("x").json(), make_pod("q").json(), config_map]
    p, q = policyengine.explain({"kind": "List", "items": items})
    assert (p["outcome"], q["outcome"]) == ("unschedulable", "bound") and "not today" in p["message"]
