"""A candidate beside the policy that serves: what it decides, what is compared, what ends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policyengine.cluster.objects import ObjectMeta
from policyengine.cluster.workload_objects import Namespace
from policyengine.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, Resource
from policyengine.framework.profile import Profile
from policyengine.framework.status import Code
from policyengine.plugins.selectors.label_selector import Requirement
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Action, Bind
from policyengine.scheduler.messages import (
    BindSucceeded,
    CandidateLoaded,
    CandidateRemoved,
    ComparisonRequested,
    ComparisonTimed,
    CyclesRequested,
    ObjectObserved,
    ProfileRemoved,
    ProfileReplaced,
)
from policyengine.scheduler.rollout import Budget, Mode, Rollout, RolloutSettings, SlidingWindow
from tests.builders import make_pod
from tests.scheduler.driver import NAME, Driver, Label, Rule, binds, node, pod, profile

SHADOW = RolloutSettings(Mode.SHADOW)
CANARY = RolloutSettings(Mode.CANARY)
NODE_CHANGED = ClusterEventWithHint(ClusterEvent(Resource.NODE, ActionType.ALL, "NodeChanged"))


def only(*nodes: str, name: str = "only", code: Code = Code.UNSCHEDULABLE) -> Rule:
    """Lets these nodes pass, and looks again when a node changes."""
    text = ",".join(nodes)
    return Rule(name, lambda _, on: None if on in nodes else code, [NODE_CHANGED], fingerprint=f"{text} {code}")


def policy(digest: str, *rules: Any, **changes: Any) -> Profile:
    made = profile(policy_hash=digest, **changes)
    return replace(made, filters=(*made.filters, *rules))


def text(policy: str) -> Profile:
    return replace(compile_policy(policy), scheduler_name=NAME)


class Rehearsal(Driver):
    """As the runner does it: a cycle, its actions handed over, then the comparison."""

    def __init__(self, live: Profile, candidate: Profile, settings: RolloutSettings) -> None:
        super().__init__(live)
        self.seconds = 0.001
        self.see(node("n1"), node("n2"))
        self.send(CandidateLoaded(candidate, settings))

    def cycle(self, limit: int = 100) -> list[Action]:
        actions: list[Action] = []
        for _ in range(limit):
            before = len(actions)
            actions += self.send(CyclesRequested(8))
            if self.state.has_decided:
                assert self.send(ComparisonRequested(self.seconds)) == []
                assert self.send(ComparisonTimed(self.seconds)) == []
            if len(actions) == before:
                break
        return actions

    @property
    def rollout(self) -> Rollout:
        return self.state.rollouts[NAME]


def hashes(actions: list[Action]) -> dict[str, str]:
    return {action.uid: action.policy_hash for action in actions if isinstance(action, Bind)}


# ---- shadow


def test_a_shadow_is_compared_with_every_decision_and_decides_none() -> None:
    run = Rehearsal(policy("live", only("n1")), policy("new", only("n2", name="moved")), SHADOW)
    run.see(pod("a"), pod("b"))
    actions = run.cycle()
    assert binds(actions) == {"a": "n1", "b": "n1"} and set(hashes(actions).values()) == {"live"}
    found = run.rollout
    assert (found.compared, found.other_node, found.other_feasible, found.agreement) == (2, 2, 2, 0.0)
    assert found.by_rule == {"only": 2, "moved": 2}
    assert (found.samples[0].live, found.samples[0].candidate, found.samples[0].feasible) == ("n1", "n2", (1, 1))


def test_a_shadow_that_is_the_same_policy_agrees_in_everything() -> None:
    run = Rehearsal(policy("live"), policy("new"), SHADOW)
    run.see(*(pod(f"p{number}") for number in range(12)))
    assert len(binds(run.cycle())) == 8
    found = run.rollout
    assert (found.compared, found.agreement, found.other_feasible, list(found.samples)) == (12, 1.0, 0, [])


def test_a_scoring_difference_is_laid_to_the_scores_that_make_it() -> None:
    live = 'policy "p" { score "taste" weight 100 = node.name == "n1" ? 100 : 0 score "size" weight 1 = 50 }'
    run = Rehearsal(text(live), text(live.replace("n1", "n2")), SHADOW)
    run.see(*(pod(f"p{number}", cpu="100m") for number in range(5)))
    assert set(binds(run.cycle()).values()) == {"n1"}
    assert (run.rollout.other_feasible, run.rollout.other_node) == (0, 5)
    assert run.rollout.by_rule == {"taste": 5}


def test_what_is_compared_is_the_snapshot_of_the_decision() -> None:
    # Two pods of three cpu on two nodes of four: after the first binding its node is full for a pod of that size, so
    # a comparison on the cluster as it is then would find fewer nodes than the decision had.
    run = Rehearsal(policy("live"), policy("new"), SHADOW)
    run.see(pod("a", cpu="3"), pod("b", cpu="3"), pod("c", cpu="3"))
    assert len(set(binds(run.cycle()).values())) == 2
    assert (run.rollout.compared, run.rollout.other_node, run.rollout.other_feasible) == (3, 0, 0)


def test_a_gang_placed_in_one_cycle_is_compared_without_its_places() -> None:
    run = Rehearsal(policy("live", gangs=(Label(),)), policy("new", gangs=(Label(),)), SHADOW)
    run.see(*(pod(f"g{number}", cpu="3").label("gang", "g").label("min", "2") for number in range(2)))
    assert len(binds(run.cycle())) == 2
    assert (run.rollout.compared, run.rollout.other_node, run.rollout.other_feasible) == (1, 0, 0)


def test_only_the_sampled_pods_are_compared() -> None:
    run = Rehearsal(policy("live"), policy("new"), replace(SHADOW, sample=0.3))
    run.see(node("n1", cpu="1000", pods="900"))
    run.validates = False
    run.see(*(pod(f"p{number}", cpu="10m") for number in range(100)))
    run.cycle(200)
    assert 15 <= run.rollout.compared <= 45


@pytest.mark.parametrize("fails", ["raises", "answers Error"])
def test_a_shadow_that_fails_is_suspended_and_the_live_policy_goes_on(fails: str) -> None:
    def breaks(_: Any, on: str) -> Code:
        if fails == "raises":
            raise ValueError("no such thing")
        return Code.ERROR

    run = Rehearsal(policy("live"), policy("new", Rule("broken", breaks)), SHADOW)
    run.see(pod("a"), pod("b"))
    assert set(binds(run.cycle())) == {"a", "b"}
    assert run.rollout.suspended.startswith("it failed on pod default/a: ")
    assert run.rollout.compared == 0


def test_a_slow_shadow_is_suspended() -> None:
    settings = replace(SHADOW, budget=Budget(cycle_time=0.01, least=3))
    run = Rehearsal(policy("live"), policy("new"), settings)
    run.seconds = 0.02
    run.see(*(pod(f"p{number}") for number in range(5)))
    assert len(binds(run.cycle())) == 5
    assert run.rollout.suspended == "a decision takes 20 ms, more than 10 ms"
    assert run.rollout.compared == 3


# ---- canary


def test_a_canary_of_all_pods_decides_with_its_own_hash_and_is_compared_with_the_live_policy() -> None:
    run = Rehearsal(policy("live", only("n1")), policy("new", only("n2")), CANARY)
    run.see(pod("a"))
    actions = run.cycle()
    assert (binds(actions), hashes(actions)) == ({"a": "n2"}, {"a": "new"})
    assert run.state.timeline("a")[1].details["policy hash"] == "new"
    run.send(BindSucceeded("a"))
    assert run.state.timeline("a")[-1].details["policy hash"] == "new"
    found = run.rollout
    assert (found.decided, found.refused, found.compared, found.samples[0].live) == (1, 0, 1, "n1")


def test_a_canary_takes_the_pods_of_some_namespaces() -> None:
    settings = replace(CANARY, namespaces=(Requirement("stage", "In", frozenset({"test"})),))
    run = Rehearsal(policy("live", only("n1")), policy("new", only("n2")), settings)
    labelled = Namespace(metadata=ObjectMeta(name="trial", labels={"stage": "test"}))
    run.send(ObjectObserved("Namespace", labelled))
    run.see(pod("a"), make_pod("b", "trial").req(cpu="1"))
    assert binds(run.cycle()) == {"a": "n1", "b": "n2"}


def test_a_percentage_is_by_owner_and_stays_the_same() -> None:
    settings = replace(CANARY, share=0.25)
    run = Rehearsal(policy("live", only("n1")), policy("new", only("n2")), settings)
    run.see(node("n1", cpu="999", pods="999"), node("n2", cpu="999", pods="999"))
    run.validates = False
    for owner in range(100):
        run.see(*(pod(f"p{owner}-{n}", cpu="1m").owner("ReplicaSet", f"rs-{owner}", f"rs-{owner}") for n in range(2)))
    where = binds(run.cycle(400))
    assert all(where[f"p{owner}-0"] == where[f"p{owner}-1"] for owner in range(100))
    assert 10 <= sum(where[f"p{owner}-0"] == "n2" for owner in range(100)) <= 40


def test_a_gang_is_decided_about_by_one_policy_whole() -> None:
    rules = (Label(),)
    settings = replace(CANARY, share=0.5)
    run = Rehearsal(policy("live", only("n1"), gangs=rules), policy("new", only("n2"), gangs=rules), settings)
    run.see(node("n1", cpu="99", pods="99"), node("n2", cpu="99", pods="99"))
    for gang in range(16):
        members = (pod(f"g{gang}-{n}", cpu="10m").owner("Job", f"job-{gang}-{n}", f"job-{gang}-{n}") for n in range(3))
        run.see(*(one.label("gang", f"g{gang}").label("min", "3") for one in members))
    where = binds(run.cycle(100))
    assert len(where) == 48
    of_gang = [{where[f"g{gang}-{n}"] for n in range(3)} for gang in range(16)]
    assert {frozenset(nodes) for nodes in of_gang} == {frozenset({"n1"}), frozenset({"n2"})}


def test_a_pod_that_the_candidate_refused_waits_for_what_the_candidates_rule_registered() -> None:
    silent = Rule("only", lambda _, on: Code.UNSCHEDULABLE, [], fingerprint="never")
    run = Rehearsal(policy("live", silent), policy("new", only("n9")), CANARY)
    run.see(pod("a"))
    run.cycle()
    assert run.places("a") == ["unschedulable"]
    run.wait(20)
    run.see(node("n9"))
    assert hashes(run.cycle()) == {"a": "new"}


def test_when_a_canary_begins_the_pods_wake_that_a_rule_refused_which_is_another_in_it() -> None:
    run = Rehearsal(policy("live", only("n7"), only("n1", name="same")), policy("other"), SHADOW)
    run.see(pod("a"))
    run.cycle()
    run.wait(20)
    assert run.places("a") == ["unschedulable"]
    run.send(CandidateLoaded(policy("new", only("n1"), only("n1", name="same")), CANARY))
    assert run.places("a") == ["active"]
    assert hashes(run.cycle()) == {"a": "new"}


def test_a_canary_that_refuses_too_many_pods_is_rolled_back_and_the_live_policy_takes_them() -> None:
    settings = replace(CANARY, budget=Budget(unschedulable=0.5, least=4))
    run = Rehearsal(policy("live", only("n1")), policy("new", only()), settings)
    run.see(*(pod(f"p{number}", cpu="500m") for number in range(6)))
    actions = run.cycle()
    assert run.rollout.suspended == "100.0% of the pods that it decided about are refused, more than 50.0%"
    assert set(hashes(actions).values()) == {"live"}
    run.wait(20)
    actions += run.cycle()
    assert set(binds(actions)) == {f"p{number}" for number in range(6)}
    assert set(hashes(actions).values()) == {"live"}


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        (Budget(divergence=0.5, least=2), "100.0% of the compared pods go elsewhere, more than 50.0%"),
        (Budget(cycle_time=0.01, least=2), "a decision takes 20 ms, more than 10 ms"),
    ],
    ids=["differs too often", "is slow"],
)
def test_a_canary_that_exceeds_its_budget_is_rolled_back(budget: Budget, why: str) -> None:
    run = Rehearsal(policy("live", only("n1")), policy("new", only("n2")), replace(CANARY, budget=budget))
    run.seconds = 0.02
    run.see(*(pod(f"p{number}", cpu="100m") for number in range(4)))
    assert list(hashes(run.cycle()).values()) == ["new", "new", "live", "live"]
    assert run.rollout.suspended == why


def test_a_canary_that_fails_is_rolled_back_at_once_and_its_pod_is_not_lost() -> None:
    run = Rehearsal(policy("live"), policy("new", only(name="broken", code=Code.ERROR)), CANARY)
    run.see(pod("a"))
    assert binds(run.cycle(1)) == {}
    assert run.rollout.suspended.startswith("it failed on pod default/a: ")
    run.wait(20)
    assert hashes(run.cycle()) == {"a": "live"}


def test_a_removed_canary_gives_its_pods_back() -> None:
    run = Rehearsal(policy("live", only("n1")), policy("new", only("n9")), CANARY)
    run.see(pod("a"))
    run.cycle()
    run.wait(20)
    assert run.places("a") == ["unschedulable"]
    run.send(CandidateRemoved(NAME))
    run.send(CandidateRemoved(NAME))
    run.send(CandidateRemoved("never-served"))
    assert run.state.rollouts == {}
    assert hashes(run.cycle()) == {"a": "live"}


def test_pods_wait_for_the_live_policy_even_if_there_is_a_canary() -> None:
    run = Rehearsal(policy("live"), policy("new"), CANARY)
    run.see(pod("a"))
    run.send(ProfileRemoved(NAME))
    assert run.cycle() == [] and run.places("a") == ["unserved"]
    run.send(ProfileReplaced(policy("live 2")))
    assert hashes(run.cycle()) == {"a": "new"}


def test_another_live_policy_starts_the_counts_over_and_wakes_only_its_own_refusals() -> None:
    run = Rehearsal(policy("live", only("n1")), policy("new", only("n9")), CANARY)
    run.see(pod("a"))
    run.cycle()
    run.wait(20)
    assert run.rollout.compared == 1
    run.send(ProfileReplaced(policy("live 2", only("n2"))))
    assert run.rollout.compared == 0
    assert run.places("a") == ["unschedulable"]


def test_a_suspended_candidate_that_is_loaded_suspended_decides_nothing() -> None:
    run = Rehearsal(policy("live"), policy("new"), SHADOW)
    run.send(CandidateLoaded(policy("new"), CANARY, "it failed yesterday"))
    run.see(pod("a"))
    assert hashes(run.cycle()) == {"a": "live"}
    assert run.rollout.suspended == "it failed yesterday" and run.rollout.compared == 0


def test_a_candidate_for_a_name_that_nobody_ever_served_is_passed_over() -> None:
    driver = Driver()
    driver.send(CandidateLoaded(replace(profile(), scheduler_name="other"), SHADOW))
    assert driver.state.rollouts == {}


def test_batches_are_whole_again_once_no_candidate_is_tried() -> None:
    run = Rehearsal(policy("live"), policy("new"), SHADOW)
    run.see(*(pod(f"p{number}", cpu="100m") for number in range(4)))
    assert len(binds(run.send(CyclesRequested(8)))) == 1
    run.send(CandidateRemoved(NAME))
    assert len(binds(run.send(CyclesRequested(8)))) == 3


# ---- what is remembered


def test_recent_counts_each_pod_once_and_forgets() -> None:
    recent = SlidingWindow(10.0)
    assert recent.mean(0.0, 1) is None
    for uid, value in (("a", 1.0), ("b", 0.0), ("a", 1.0)):
        recent.note(uid, value, 0.0)
    assert recent.mean(0.0, 2) == 0.5
    assert recent.mean(0.0, 3) is None
    recent.note("b", 1.0, 5.0)
    assert recent.mean(5.0, 1) == 1.0
    assert recent.mean(10.5, 1) == 1.0  # `b` alone
    assert recent.mean(16.0, 1) is None


# ---- a reload of a compiled policy

RULES = """policy "p" {{
  filter "named" {{ require node.name == "{node}" }}
  filter "few" {{ require node.podCount < {most} }}
  queue {{ order by {order} desc }}
}}
"""


def compiled(node: str = "n1", most: int = 9, order: str = "pod.priority") -> Profile:
    return text(RULES.format(node=node, most=most, order=order))


@pytest.mark.parametrize("order", ["pod.priority", "pod.qos"])
def test_a_reload_wakes_the_pods_that_a_changed_rule_refused_and_no_others(order: str) -> None:
    driver = Driver(compiled()).showing(node("n2"), pod("a"))
    driver.cycle()
    driver.wait(20)
    assert driver.places("a") == ["unschedulable"]
    driver.send(ProfileReplaced(compiled(most=8, order=order)))
    changed = order != "pod.priority"
    assert driver.places("a") == ["active" if changed else "unschedulable"]
    if not changed:
        driver.send(ProfileReplaced(compiled(node="n2", most=8)))
        assert driver.places("a") == ["active"]
    driver.send(ProfileReplaced(compiled(node="n2", most=7, order=order)))
    assert binds(driver.cycle()) == {"a": "n2"}


def test_pods_stay_where_they_are_when_only_rules_change() -> None:
    driver = Driver(compiled()).showing(node("n2"), pod("refused"), pod("gated").gate("wait"))
    driver.cycle()
    driver.see(pod("active"))
    before = {uid: list(driver.state.timeline(uid)) for uid in ("active", "gated", "refused")}
    driver.send(ProfileReplaced(compiled(most=8)))
    assert driver.places("active", "gated", "refused") == ["active", "gated", "unschedulable"]
    assert {uid: list(driver.state.timeline(uid)) for uid in before} == before
    driver.wait(20)
    driver.see(node("n1"))
    assert set(binds(driver.cycle())) == {"active", "refused"}
    driver.see(pod("gated"))
    assert set(binds(driver.cycle())) == {"gated"}
