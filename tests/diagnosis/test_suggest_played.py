"""What `explain` suggests for a pod among all that wait, and its gang: it obeys the policy, and the play proves it."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.diagnosis import suggest
from policyengine.diagnosis.dump import read_objects
from policyengine.diagnosis.suggest import suggest_played
from policyengine.policy_compiler import compile_policy
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

Json = dict[str, Any]
NOW = 1_767_600_000.0
DEFAULT = 'policy "main" { scheduler "default-scheduler" %s }'
GANG = 'gang "crew" when pod.labels[?"crew"].hasValue() { key: pod.labels["crew"] min: 3 timeout: 30s }'


def node(name: str, cpu: str = "4") -> NodeBuilder:
    return make_node(name).allocatable(cpu=cpu, memory="8Gi", pods=10).label("kubernetes.io/hostname", name)


def pod(name: str, cpu: str = "1") -> PodBuilder:
    return make_pod(name).req(cpu=cpu).created("2026-01-05T07:00:00Z")


def crew(count: int, cpu: str = "1") -> list[PodBuilder]:
    return [pod(f"c{number}", cpu).label("crew", "x") for number in range(1, count + 1)]


def found(asked: str, *builders: NodeBuilder | PodBuilder, rules: str = "", items: tuple[Json, ...] = ()) -> list[Json]:
    listed = {"kind": "List", "items": [*items, *(builder.json() for builder in builders)]}
    return suggest_played(read_objects(listed), [compile_policy(DEFAULT % rules)], NOW, f"default/{asked}")


def changes(suggestions: list[Json]) -> list[str]:
    return [one["change"] for one in suggestions]


def kinds(suggestions: list[Json]) -> set[str]:
    return {change["kind"] for one in suggestions for change in one["changes"]}


def test_a_pod_that_is_placed_needs_nothing_and_one_that_does_not_wait_has_nothing() -> None:
    assert found("p", node("a"), pod("p")) == []
    assert found("absent", node("a"), pod("p")) == []
    assert found("p", node("a"), pod("p").deleting()) == []


def test_a_misspelt_scheduler_name_becomes_the_nearest_that_is_served() -> None:
    (one,) = found("p", node("a"), pod("p").scheduler("defualt-scheduler"))
    assert one["change"] == "ask for the scheduler default-scheduler instead of defualt-scheduler"
    assert one["chosen"] == "a"


def test_a_gate_is_removed() -> None:
    (one,) = found("p", node("a"), pod("p").gate("example.com/later"))
    assert one["change"] == "remove the scheduling gate example.com/later"
    patch = """'{"spec":{"schedulingGates":null}}'"""
    assert one["changes"][0]["kubectl"] == f"kubectl --namespace default patch pod p --type=merge --patch {patch}"


def test_a_gang_that_lacks_a_member_gets_one() -> None:
    (one,) = found("c1", node("a"), *crew(2), rules=GANG)
    assert one["change"] == "add 1 member like default/c1 to its gang"
    assert "kubectl" not in one["changes"][0]


def test_the_members_owner_is_scaled_and_a_replica_sets_own_owner_instead_of_it() -> None:
    def line(kind: str, *items: Json) -> str:
        owner = {"kind": kind, "name": "crew", "uid": "u", "controller": True}
        members = [one.set("metadata.ownerReferences", [owner]) for one in crew(2)]
        (one,) = found("c1", node("a"), *members, rules=GANG, items=items)
        return str(one["changes"][0].get("kubectl", ""))

    deployment = {"kind": "Deployment", "name": "training", "uid": "v", "controller": True}
    metadata = {"name": "crew", "namespace": "default", "uid": "u", "ownerReferences": [deployment]}
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata}
    assert line("StatefulSet") == "kubectl --namespace default scale statefulset/crew --replicas=3"
    assert line("ReplicaSet", replica_set) == "kubectl --namespace default scale deployment/training --replicas=3"
    assert line("Job") == ""


def test_a_gang_gets_as_many_nodes_as_it_takes_or_all_its_members_ask_for_less() -> None:
    suggested = found("c2", node("a", "2"), *crew(3, "2"), rules=GANG)
    assert changes(suggested) == ["request 660m cpu instead of 2 (all 3 members that wait)", "add 2 nodes like a"]


def test_a_gang_deletes_none_of_a_team_that_a_quota_protects() -> None:
    quotas = 'quota "red" when pod.labels[?"team"].orValue("") == "red" { guarantee: {cpu: 2} borrow: true }'
    running = [pod(f"{team}-{name}").label("team", team).node(name) for team in ("red", "blue") for name in ("a", "b")]
    suggested = found("c1", node("a", "2"), node("b", "2"), *running, *crew(2), rules=GANG.replace("3", "2") + quotas)
    freed = [one for one in suggested if one["changes"][0]["kind"] == "free"]
    assert [one["changes"][0]["pods"] for one in freed] == [["default/blue-a", "default/blue-b"]]


def test_victims_are_such_as_the_policy_a_budget_and_priority_let_go() -> None:
    def freed(running: PodBuilder, rules: str = "", items: tuple[Json, ...] = ()) -> bool:
        return "free" in kinds(found("p", node("a", "1"), running.node("a"), pod("p"), rules=rules, items=items))

    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": 0},
    }
    rules = 'preempt { victims: victim.labels[?"keep"].orValue("") != "yes" }'
    assert freed(pod("old"))
    assert not freed(pod("old").priority(5))
    assert not freed(pod("old").label("app", "db"), items=(budget,))
    assert freed(pod("old").label("app", "web"), items=(budget,))
    assert not freed(pod("old").label("keep", "yes"), rules=rules)


def test_whose_the_victims_are_is_said() -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    old = pod("old").label("team", "red").set("metadata.ownerReferences", [owner]).node("a")
    rules = 'quota "red" when pod.labels[?"team"].orValue("") == "red" { guarantee: {memory: 2Gi} borrow: true }'
    suggested = found("p", node("a", "1"), old, pod("p"), rules=rules)
    assert "free 1 cpu on a: delete or move default/old (ReplicaSet web, quota red)" in changes(suggested)


def test_a_quota_is_raised_to_what_it_takes() -> None:
    amounts = "guarantee: {cpu: 1}, limit: {cpu: 2} borrow: true"
    rules = f'quota "red" when pod.labels[?"team"].orValue("") == "red" {{ {amounts} }}'
    running = pod("old", "1500m").label("team", "red").node("a")
    suggested = found("p", node("a"), running, pod("p").label("team", "red"), rules=rules)
    quota = next(one for one in suggested if one["changes"][0]["kind"] == "quota")
    assert quota["change"] == "raise the limit of quota red from 2 to 2500m cpu"


def test_of_a_quota_and_a_filter_of_one_name_both_are_looked_after() -> None:
    rules = """quota "red" when true { guarantee: {cpu: 1}, limit: {cpu: 2} borrow: true }
      filter "red" { require node.labels[?"team"].orValue("") == pod.labels[?"team"].orValue("") else "no" }"""
    suggested = found("p", node("a").label("team", "blue"), pod("p"), rules=rules)
    assert "label the pod team=blue" in changes(suggested)
    running = pod("old", "1500m").label("team", "blue").node("a")
    suggested = found("p", node("a").label("team", "blue"), running, pod("p").label("team", "blue"), rules=rules)
    assert "raise the limit of quota red from 2 to 2500m cpu" in changes(suggested)


def test_a_param_is_set_to_the_nearest_value_that_helps_within_its_range() -> None:
    rule = 'filter "room" { require node.free.memory - pod.requests.memory >= headroom else "too little left" }'
    asked = pod("p").req(memory="5Gi")

    def told(text: str) -> list[str]:
        suggested = found("p", node("a"), asked, rules=f"param headroom: memory = 4Gi range {text} {rule}")
        return [one["change"] for one in suggested if "param" in one["change"]]

    assert told("[0Gi, 8Gi]") == ["set param headroom of policy main to 3Gi instead of 4Gi"]
    assert told("[4Gi, 8Gi]") == []


def test_a_label_that_a_rule_asks_for_is_given_to_the_pod_or_a_node() -> None:
    rule = 'filter "tier" { require node.labels[?"tier"].orValue("") == pod.labels[?"tier"].orValue("") else "no" }'
    suggested = found("p", node("a").label("tier", "gold"), pod("p"), rules=rule)
    assert suggested[0]["change"] == "label the pod tier=gold"
    line = "kubectl --namespace default label --overwrite pod p tier=gold"
    assert suggested[0]["changes"][0]["kubectl"] == line
    suggested = found("p", node("a"), node("b").label("tier", "tin"), pod("p").label("tier", "tin").req(cpu="1"))
    assert suggested == []


def test_a_claim_that_is_missing_is_made_of_a_class_that_provides() -> None:
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    suggested = found("p", node("a"), pod("p").pvc("data"), items=(storage,))
    assert suggested[0]["change"] == "create the claim data of class fast"
    assert suggested[0]["chosen"] == "a"


def test_who_is_before_it_in_the_queue_is_served_too() -> None:
    earlier = [pod(f"q{number}", "2").created("2026-01-05T06:00:00Z") for number in (1, 2)]
    suggested = found("p", node("a", "2"), pod("old", "2").node("a").priority(9), *earlier, pod("p", "2"))
    assert changes(suggested) == ["add 3 nodes like a"]


def test_what_others_pay_is_told_and_comes_last() -> None:
    picky = pod("q", "2").created("2026-01-05T06:00:00Z")
    asked = pod("p", "4").priority(5).node_selector({"disk": "ssd"})
    suggested = found("p", node("a"), picky, asked)
    assert suggested[0]["costs"] == {"default/q": "unschedulable"}
    assert [bool(one.get("costs")) for one in suggested] == sorted(bool(one.get("costs")) for one in suggested)


def test_what_an_owner_makes_again_does_not_take_the_place() -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    old = pod("old").set("metadata.ownerReferences", [owner]).node("a")
    suggested = found("p", node("a", "1"), old, pod("p"))
    assert suggested[0]["changes"][0]["pods"] == ["default/old"]
    favoured = "queue { order by pod.name }"
    assert "free" not in kinds(found("p", node("a", "1"), old, pod("p"), rules=favoured))


def test_changes_are_combined_in_a_play_too() -> None:
    suggested = found("p", node("a").taint("gpu"), pod("p").gate("later"))
    assert {change["kind"] for change in suggested[0]["changes"]} == {"gate", "tolerate"}


def test_a_name_that_could_pass_for_a_flag_is_in_no_command() -> None:
    suggested = found("p", node("--all").unschedulable(), pod("p"))
    assert suggested[0]["change"] == "uncordon --all"
    assert "kubectl" not in suggested[0]["changes"][0]


def test_what_a_shell_would_read_is_quoted() -> None:
    suggested = found("p", node("a").taint("x", "$(reboot)"), pod("p"))
    lines = [change["kubectl"] for one in suggested for change in one["changes"] if "kubectl" in change]
    assert "kubectl taint node a 'x=$(reboot):NoSchedule-'" in lines


def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggest, "PLAYS", 2)
    told: list[float] = []
    objects = read_objects({"items": [node("a").taint("gpu").json(), pod("p").json()], "kind": "List"})
    one = suggest_played(objects, [compile_policy(DEFAULT % "")], NOW, "default/p", told.append)
    assert len(one) == 1 and told == [0.5, 1.0]


def test_of_nodes_that_are_added_all_that_come_before_the_pod_have_their_share() -> None:
    earlier = [pod(f"q{number}", "2").created("2026-01-05T06:00:00Z") for number in range(9)]
    suggested = found("p", node("a", "4"), pod("old", "4").node("a").priority(9), *earlier, pod("p", "2"))
    assert "add 5 nodes like a" in changes(suggested)


def test_a_permit_that_holds_a_pod_for_long_may_have_a_param() -> None:
    rules = 'param hold: duration = 20min range [0s, 20min] permit "late" when pod.name == "p" { delay: hold }'
    assert changes(found("p", node("a"), pod("p"), rules=rules)) == [
        "set param hold of policy main to 0s instead of 1200s"
    ]


def test_a_quota_of_a_gang_is_raised_for_all_its_members() -> None:
    rules = (
        GANG + ' quota "red" when pod.labels[?"crew"].hasValue() { guarantee: {cpu: 1}, limit: {cpu: 2} borrow: true }'
    )
    quotas = [one for one in found("c1", node("a"), *crew(3), rules=rules) if one["changes"][0]["kind"] == "quota"]
    assert changes(quotas) == ["raise the limit of quota red from 2 to 3 cpu"]
