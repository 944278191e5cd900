"""What the running scheduler tells of its policies, of all that wait and of one pod: `/debug/status quota rollout queue
pods`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from policyengine.kube.policies.precedence import (
    REJECTED,
    SERVING,
    Candidate,
    Precedence,
    Problem,
    SourceKey,
)
from policyengine.kube.policies.rollout_settings import described
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.messages import BindSucceeded, CandidateLoaded
from policyengine.scheduler.pod_timeline import LINES
from policyengine.scheduler.rollout import Budget, Mode, RolloutSettings
from policyengine.server import debug
from policyengine.server.debug import quota, rollout, status
from tests.builders import make_pod
from tests.scheduler.driver import Driver, node, pod
from tests.scheduler.policy_members import driven

QUOTA = """
quota "a" when pod.namespace == "a" { guarantee: {cpu: 1, memory: 1Gi} limit: {cpu: 3} borrow: true }
queue { fair by pod.namespace }
"""


def plain(page: dict[str, Any]) -> dict[str, Any]:
    """As it comes over the wire."""
    found: dict[str, Any] = json.loads(json.dumps(page))
    assert found == page
    return found


def test_a_quota_tells_what_is_used_and_what_is_borrowed() -> None:
    driver = driven(QUOTA)
    driver.see(
        node("n1", cpu="10"), make_pod("p", "a").req(cpu="1500m", memory="512Mi"), make_pod("q", "b").req(cpu="2")
    )
    driver.cycle()
    found = plain(quota(driver.state))
    (one,) = found["quotas"]
    assert (one["quota"], one["guarantee"], one["limit"]) == ("a", {"cpu": 1000, "memory": 1 << 30}, {"cpu": 3000})
    assert (one["used"]["cpu"], one["borrowed"]) == (1500, {"cpu": 500, "memory": 0})
    assert [(one["tenant"], one["share"]) for one in found["tenants"]] == [("a", 0.15), ("b", 0.2)]


def test_a_policy_without_quotas_and_tenants_has_empty_tables() -> None:
    assert quota(Driver().state) == {"quotas": [], "tenants": []}


def test_a_candidate_tells_how_it_is_tried_and_what_was_found() -> None:
    driver = Driver()
    profile = compile_policy('policy "next" { scheduler "default-scheduler" }')
    settings = RolloutSettings(Mode.SHADOW, budget=Budget(divergence=0.05))
    driver.send(CandidateLoaded(profile, settings, "too slow"))
    (one,) = plain(rollout(driver.state))["rollouts"]
    assert (one["scheduler"], one["policy"], one["suspended"]) == ("default-scheduler", "next", "too slow")
    assert one["settings"] == described(settings)
    assert (one["found"]["compared"], one["found"]["agreement"]) == (0, None)


def test_what_serves_and_what_was_refused_are_told_apart() -> None:
    profile = compile_policy('policy "teams" { scheduler "teams" }')
    broken = Problem("found `x`", 3, 5)
    precedence = Precedence()
    for name, created, profiles, problem in (
        ("good", "1", (profile,), None),
        ("late", "2", (profile,), None),
        ("bad", "3", (), broken),
    ):
        precedence.put(Candidate(SourceKey("policies", name, "ConfigMap"), created, profiles, problem))
    found = plain(status(Driver(profile).state, precedence.decide().standings))
    assert found["serving"] == [
        {
            "scheduler": "teams",
            "policy": "teams",
            "hash": profile.policy_hash,
            "from": "ConfigMap policies/good",
            "waiting": 0,
        }
    ]
    told = {one["name"]: (one["how"], one["schedulers"], one["line"], one["column"]) for one in found["objects"]}
    assert told == {"good": (SERVING, ["teams"], 0, 0), "late": (REJECTED, [], 0, 0), "bad": (REJECTED, [], 3, 5)}
    late = next(one for one in found["objects"] if one["name"] == "late")
    assert late["message"] == "scheduler `teams` is served by the older ConfigMap `policies/good`"


def test_a_policy_from_a_file_says_so() -> None:
    (one,) = status(Driver().state, {})["serving"]
    assert (one["scheduler"], one["from"]) == ("default-scheduler", "file")


def test_the_queue_tells_pods_in_the_order_of_their_turns_with_what_was_said_of_them() -> None:
    driver = Driver()
    driver.see(node("n1", cpu="2"), pod("big", cpu="4"))
    driver.cycle()
    driver.now += 30
    driver.see(pod("low").priority(1), pod("high").priority(9), make_pod("stranger").scheduler("another"))
    found = plain(debug.queue(driver.state, driver.now))
    assert list(found["pods"]) == ["default/high", "default/low", "default/big", "default/stranger"]
    told = {key.partition("/")[2]: (one["place"], one["position"]) for key, one in found["pods"].items()}
    assert told == {
        "high": ("active", 0),
        "low": ("active", 1),
        "big": ("unschedulable", None),
        "stranger": ("unserved", None),
    }
    big = found["pods"]["default/big"]
    assert (big["attempts"], big["message"][:40]) == (1, "0/1 nodes are available: 1 Insufficient ")
    assert found["count"] == 4


def test_a_pod_waits_on_while_nothing_happens() -> None:
    driver = Driver()
    driver.see(pod("big").created("2026-01-05T10:00:00Z"))
    made = datetime(2026, 1, 5, 10, tzinfo=UTC).timestamp()
    waits = [debug.queue(driver.state, made + after)["pods"]["default/big"]["waits"] for after in (-1, 0, 90)]
    assert waits == [0, 0, 90]


def test_positions_are_those_in_which_pods_of_tenants_are_popped() -> None:
    driver = driven("queue { fair by pod.namespace }")
    names = [("a", "a0"), ("a", "a1"), ("b", "b0"), ("c", "c0"), ("a", "a2")]
    driver.see(*(make_pod(name, namespace).req(cpu="1") for namespace, name in names))
    found = debug.queue(driver.state, driver.now)["pods"]
    told = {key: one["position"] for key, one in found.items()}
    ranks = {f"{namespace}/{name}": driver.state.queue_position(name) for namespace, name in names}
    assert told == ranks
    assert sorted(ranks.values(), key=lambda one: -1 if one is None else one) == [0, 1, 2, 3, 4]


def test_only_the_last_message_is_told_however_long_the_story_is() -> None:
    driver = Driver()
    driver.see(node("n1", cpu="2"), pod("big", cpu="4"))
    for turn in range(LINES):
        driver.see(node("n1", cpu=str(2 + turn % 2)))
        driver.now += 400
        driver.cycle()
    assert len(driver.state.timeline("big")) == LINES
    assert driver.state.last_message("big") == debug.pod_timeline(driver.state, "default", "big")["message"]
    assert driver.state.last_message("nobody") == ""


def test_lists_are_cut(monkeypatch: Any) -> None:
    monkeypatch.setattr(debug, "MOST", 3)
    driver = Driver()
    driver.see(*(pod(f"p{number}") for number in range(5)))
    found = debug.queue(driver.state, driver.now)
    assert (len(found["pods"]), found["count"]) == (3, 5)


def test_a_held_pod_tells_how_far_its_gang_is_now() -> None:
    driver = driven('gang "crew" when true { key: "crew" min: 3 timeout: 60s }')
    driver.see(pod("a"), pod("b"))
    for page in (
        debug.queue(driver.state, driver.now)["pods"]["default/a"],
        debug.pod_timeline(driver.state, "default", "a"),
    ):
        assert page["message"] == "gang crew: 2 of 3 members exist"


def test_a_waiting_pod_tells_where_it_is_and_why() -> None:
    driver = Driver()
    driver.see(node("n1", cpu="2"), pod("p", cpu="4"))
    driver.cycle()
    told = debug.pod_timeline(driver.state, "default", "p")
    assert (told["pod"], told["place"], told["position"], told["node"]) == ("default/p", "unschedulable", None, None)
    assert told["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (told["attempts"], told["why"]) == (1, None)
    assert [line["what"] for line in told["story"]] == ["queued", "attempted", "refused"]
    refused = told["story"][-1]
    assert refused["by"] == ["NodeResourcesFit"]
    assert refused["policy hash"] == told["policy"]["hash"] == driver.state.profiles[0].policy_hash
    assert refused["at"] == "1970-01-01T00:16:40.000Z"
    assert json.loads(json.dumps(told)) == told


def test_an_active_pod_tells_its_position() -> None:
    driver = Driver()
    driver.see(pod("a").priority(1), pod("b").priority(2))
    assert [debug.pod_timeline(driver.state, "default", name)["position"] for name in ("b", "a")] == [0, 1]
    assert debug.pod_timeline(driver.state, "default", "a")["queue"]["active"] == 2


# --- one pod ---------------------------------------------------------------------------------------------


def test_a_bound_pod_tells_what_woke_it_and_where_it_runs() -> None:
    driver = Driver()
    running = pod("running", cpu="4").node("n1")
    driver.see(node("n1", cpu="4"), running, pod("p", cpu="2"))
    driver.cycle()
    driver.see(running.phase("Succeeded"))
    driver.now += 7.0
    driver.cycle()
    driver.send(BindSucceeded("p"))
    told = debug.pod_timeline(driver.state, "default", "p")
    woken = next(line for line in told["story"] if line["what"] == "woken")
    assert (woken["event"], woken["asked by"]) == ("AssignedPodDelete", "NodeResourcesFit")
    assert [line["what"] for line in told["story"]][-2:] == ["reserved", "bound"]
    assert (told["node"], told["message"], told["attempts"]) == ("n1", "", 2)
    why = told["why"]
    assert (why["basis"], why["waited"], why["attempt"], why["how"]) == ("record", 7.0, 2, "only")
    assert json.loads(json.dumps(told)) == told


def test_a_pod_of_another_scheduler_has_no_policy() -> None:
    driver = Driver()
    driver.see(pod("p").scheduler("another"))
    told = debug.pod_timeline(driver.state, "default", "p")
    assert (told["policy"], told["place"], told["queue"]) == (None, "unserved", {})


def test_a_pod_nobody_knows() -> None:
    with pytest.raises(KeyError):
        debug.pod_timeline(Driver().state, "default", "p")
