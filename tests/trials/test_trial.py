"""The trial: a scheduler on a cluster of dicts and on virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.storage_objects import PersistentVolume
from policyengine.framework.status import Code
from policyengine.scheduler.messages import NodeDeleted, NodeObserved, ObjectObserved, PodDeleted, PodObserved
from policyengine.trials.trial import Trial, TrialTooLong
from tests.builders import NodeBuilder, PodBuilder
from tests.scheduler.driver import START, Label, Rule, node, pod, profile
from tests.scheduler.invariants import validate
from tests.scheduler.storage import claim, storage_class, volume


def trial_of(*builders: NodeBuilder | PodBuilder, **changes: object) -> Trial:
    trial = Trial([profile(**changes)], START)
    show(trial, *builders)
    return trial


def show(trial: Trial, *builders: NodeBuilder | PodBuilder) -> None:
    for builder in builders:
        built = builder.build()
        trial.see(PodObserved(built) if isinstance(builder, PodBuilder) else NodeObserved(built))


def test_a_pod_that_fits_is_bound_and_seen_to_be() -> None:
    trial = trial_of(node("a"), pod("p"))
    trial.settle()
    assert trial.node_of("p") == "a"
    assert [(at, bind.uid, bind.node) for at, bind in trial.binds] == [(START, "p", "a")]
    assert [event.reason for _, event in trial.events] == ["Scheduled"]
    assert trial.state.place("p") == "bound"
    validate(trial.state)


def test_nothing_runs_before_it_is_asked_to() -> None:
    trial = trial_of(node("a"), pod("p"))
    assert trial.node_of("p") == ""
    assert trial.popped == []


def test_a_pod_that_fits_nowhere_is_refused_with_the_reason() -> None:
    trial = trial_of(node("a", cpu="1"), pod("p", cpu="2"))
    trial.settle()
    assert trial.node_of("p") == ""
    assert trial.refusal("p").startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert [line.what for line in trial.timeline("p")] == ["queued", "attempted", "refused"]
    assert trial.cluster.pods["p"].status.conditions[0].reason == "Unschedulable"


def test_a_pod_refused_is_tried_again_once_there_is_room() -> None:
    trial = trial_of(node("a", cpu="1"), pod("p", cpu="2"))
    trial.settle()
    show(trial, node("b", cpu="4"))
    trial.settle()
    assert trial.node_of("p") == "b"
    assert trial.refusal("p") == ""
    assert trial.popped == ["p", "p"]


def test_time_passes_only_when_told_and_a_gang_member_waits_meanwhile() -> None:
    members = [pod(name).labels({"gang": "g", "min": "2"}) for name in ("one", "two")]
    trial = trial_of(node("a"), members[0], gangs=(Label(),))
    trial.settle()
    assert trial.state.place("one") == "held"
    trial.advance(10.0)
    assert trial.now == START + 10.0
    show(trial, members[1])
    trial.settle()
    assert [trial.node_of(name) for name in ("one", "two")] == ["a", "a"]


def test_a_pod_in_backoff_is_bound_once_its_backoff_is_over() -> None:
    trial = trial_of(pod("p"))
    trial.advance(4.0)
    assert trial.node_of("p") == ""
    show(trial, node("a"))
    trial.advance(2.0)
    assert trial.node_of("p") == "a"
    assert trial.binds[0][0] == START + 5.0


def test_a_pod_deleted_or_a_node_gone_is_forgotten() -> None:
    trial = trial_of(node("a"), pod("p"), pod("q"))
    trial.see(PodDeleted("default", "q"))
    trial.settle()
    trial.see(NodeDeleted("a"))
    assert set(trial.cluster.pods) == {"p"}
    assert trial.cluster.nodes == {}
    validate(trial.state)


def test_a_binding_that_was_withdrawn_is_not_made() -> None:
    """The node is cordoned between the decision and its posting."""
    seen: list[str] = []
    trial = Trial([profile()], START, tried=lambda uids: cordon(uids))

    def cordon(uids: object) -> None:
        if not seen:
            seen.append("once")
            trial.see(NodeObserved(node("a").unschedulable().build()))

    show(trial, node("a"), pod("p"))
    trial.settle()
    assert trial.node_of("p") == ""
    assert trial.binds == []


def test_patches_change_the_object_and_the_pod_waits_for_who_makes_volumes() -> None:
    trial = trial_of(node("a").label("kubernetes.io/hostname", "a"), pod("p").pvc("c"))
    for kind, item in (
        ("StorageClass", storage_class("local")),
        ("PersistentVolume", volume("v", node="a")),
        ("PersistentVolumeClaim", claim("c")),
    ):
        trial.see(ObjectObserved(kind, item))
    trial.settle()
    assert trial.state.place("p") == "waiting at prebind"
    patched = trial.cluster.objects["PersistentVolume"]["v"]
    assert isinstance(patched, PersistentVolume)
    assert patched.spec.claim_ref is not None
    assert patched.spec.claim_ref.name == "c"
    trial.see(ObjectObserved("PersistentVolumeClaim", claim("c", volume="v", bound=True)))
    trial.settle()
    assert trial.node_of("p") == "a"


def test_it_says_when_something_is_due_and_goes_there() -> None:
    trial = trial_of(node("a", cpu="1"), pod("wide", cpu="4"))
    trial.settle()
    assert trial.next_due() == START + 320.0  # five minutes, and the next look of those at every half minute
    trial.advance_to(START + 600.0)
    assert trial.node_of("wide") == ""
    assert trial.now == START + 600.0
    show(trial, node("b", cpu="8"))
    trial.settle()
    assert trial.node_of("wide") == "b"


def test_a_trial_that_never_rests_is_ended() -> None:
    calls: list[str] = []

    def fails(info: object, name: str) -> Code | None:
        calls.append(name)
        raise RuntimeError("broken")

    trial = Trial([profile(filters=(Rule("broken", fails),))], START, limit=50)
    show(trial, node("a"), pod("p"))
    with pytest.raises(TrialTooLong, match="more than 50 steps"):
        trial.advance(1e9)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), max_size=8), st.integers(1, 3))
def test_the_same_messages_give_the_same_trial(pods: list[tuple[int, int]], nodes: int) -> None:
    def run() -> Trial:
        trial = trial_of(*(node(f"n{number}", cpu="4") for number in range(nodes)))
        for number, (cpu, priority) in enumerate(pods):
            show(trial, pod(f"p{number}", cpu=str(cpu)).priority(priority))
        trial.advance(30.0)
        return trial

    one, other = run(), run()
    assert one.history == other.history
    assert one.binds == other.binds
    for name in one.cluster.nodes:
        used = sum(pods[int(uid[1:])][0] for uid in one.cluster.pods if one.node_of(uid) == name)
        assert used <= 4
    validate(one.state)
