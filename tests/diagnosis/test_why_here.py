"""Why a pod has its node: what the scheduler wrote down, or, where nothing is left, what it would weigh now."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policyengine.diagnosis.dump import read_objects
from policyengine.diagnosis.why_here import explain_placed, why_here
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.messages import BindSucceeded, NodeDeleted, PodDeleted, ProfileRemoved, ProfileReplaced
from policyengine.scheduler.pod_timeline import RecentPlacements
from tests.builders import make_node, make_pod
from tests.scheduler.driver import NAME, Driver, Label, binds, node, pod, profile
from tests.scheduler.invariants import validate


def told(driver: Driver, uid: str) -> dict[str, Any]:
    found = why_here(driver.state, driver.state.view.pods[uid])
    assert found is not None
    assert json.loads(json.dumps(found)) == found
    return found


def placed(*names: str) -> Driver:
    driver = Driver().showing(node("n1"), node("n2", cpu="8"), node("n3", cpu="6"), *map(pod, names))
    driver.cycle()
    for name in names:
        driver.send(BindSucceeded(name))
        driver.see(pod(name).node(driver.state.view.pods[name].node_name))
    return driver


def test_a_record_says_when_by_whom_after_how_long_and_what_was_weighed() -> None:
    driver = Driver().showing(node("n1"), node("n2", cpu="8"), node("n3", cpu="1"), pod("p", cpu="2"))
    driver.now += 3.5
    driver.cycle()
    found = told(driver, "p")
    assert (found["basis"], found["note"], found["at"]) == ("record", "", "1970-01-01T00:16:43.500Z")
    assert (found["waited"], found["attempt"], found["how"]) == (3.5, 1, "scored")
    assert found["policy"] == {"name": "default", "hash": driver.state.profiles[0].policy_hash}
    assert (found["nodes"], found["feasible"], found["refused"]) == (3, 2, {"NodeResourcesFit": 1})
    assert list(found["total"]) == ["n2", "n1"] and found["total"]["n2"] > found["total"]["n1"]
    assert found["total"]["n2"] == sum(found["scores"]["n2"].values())
    assert found["weights"]["TaintToleration"] == 3 and found["room"] is None


@pytest.mark.parametrize("others", range(6))
def test_right_after_a_decision_working_it_out_comes_to_what_was_recorded(others: int) -> None:
    driver = Driver().showing(*(node(f"n{number}", cpu=str(2 + number)) for number in range(4)))
    driver.see(*(pod(f"other{number}").node(f"n{number % 3}") for number in range(others)))
    driver.see(pod("p", cpu="2"))
    driver.cycle()
    recorded = told(driver, "p")
    driver.state._core.placements = RecentPlacements()
    anew = told(driver, "p")
    assert anew["basis"] == "now" and anew["note"].endswith("it would be placed here again")
    for key in ("policy", "how", "nodes", "feasible", "refused", "scores", "total", "weights"):
        assert anew[key] == recorded[key]


def test_a_record_stays_what_it_was_when_the_cluster_and_the_policy_change() -> None:
    driver = placed("p")
    before = told(driver, "p")
    driver.send(NodeDeleted("n3"))
    driver.see(*(pod(f"more{number}").node("n2") for number in range(3)))
    driver.send(ProfileReplaced(profile(name="another", policy_hash="f" * 64)))
    assert told(driver, "p") == before and before["policy"]["name"] == "default"


def test_a_decision_that_was_pushed_out_is_worked_out_as_of_now() -> None:
    driver = placed("p")
    driver.state._core.placements = RecentPlacements(0)
    driver.see(*(pod(f"more{number}", cpu="2").node("n2") for number in range(3)))
    found = told(driver, "p")
    assert found["note"] == (
        "worked out as of now, with no record of the decision (somebody else took it, or this scheduler before it led "
        "last, or later ones pushed it out): it would be placed on n3"
    )
    assert next(iter(found["scores"])) == "n2" and "at" not in found and "room" not in found


def test_who_was_put_elsewhere_by_somebody_else_is_told_so() -> None:
    driver = Driver().showing(node("n1"), node("n2", cpu="8"), pod("p"))
    assert binds(driver.cycle()) == {"p": "n2"}
    driver.see(pod("p").node("n1"))
    assert told(driver, "p")["note"] == (
        "worked out as of now, since somebody else put it here (this scheduler chose n2 at 1970-01-01T00:16:40.000Z): "
        "it would be placed on n2"
    )


def test_a_namesake_made_anew_is_not_told_the_story_of_the_first() -> None:
    driver = placed("p")
    driver.send(PodDeleted("default", "p", "p"))
    driver.see(pod("p").uid("second").node("n1"))
    assert told(driver, "second")["basis"] == "now"


def test_a_node_that_would_refuse_the_pod_now_or_is_gone_is_told() -> None:
    driver = placed("p")
    driver.state._core.placements = RecentPlacements()
    driver.see(node("n2", cpu="8").taint("kept", "for others"))
    found = told(driver, "p")
    assert (found["how"], found["scores"], found["total"]) == ("refused", {}, {})
    assert found["note"].endswith(
        "TaintToleration would refuse it here (node(s) had untolerated taint(s)), and it would be placed on n3"
    )
    driver.send(NodeDeleted("n2"))
    assert told(driver, "p")["note"].endswith("its node is not there any more, and it would be placed on n3")
    driver.send(NodeDeleted("n1"))
    driver.send(NodeDeleted("n3"))
    assert told(driver, "p")["note"].endswith("its node is not there any more, and no other node would take it")


def test_who_waits_or_is_served_by_nobody_has_no_answer() -> None:
    driver = Driver().showing(node("n1"), pod("huge", cpu="9"), pod("theirs").scheduler("theirs").node("n1"))
    driver.cycle()
    for uid in ("huge", "theirs"):
        assert why_here(driver.state, driver.state.view.pods[uid]) is None
    driver.see(pod("ours").node("n1"))
    driver.send(ProfileRemoved(NAME))
    assert why_here(driver.state, driver.state.view.pods["ours"]) is None


def test_asking_leaves_the_scheduler_as_it_was() -> None:
    driver, other = placed("p"), placed("p")
    driver.state._core.placements = RecentPlacements()
    assert told(driver, "p")["basis"] == "now"
    validate(driver.state)
    for number in range(4):
        assert driver.showing(pod(f"q{number}")).cycle() == other.showing(pod(f"q{number}")).cycle()


def test_a_dump_is_worked_out_with_the_pods_room_given_back() -> None:
    cluster = {
        "nodes": [
            make_node("n1").capacity(cpu="2", pods="9").json(),
            make_node("n2").capacity(cpu="1", pods="9").json(),
        ],
        "pods": [make_pod("p").req(cpu="2").node("n1").json(), make_pod("waits").req(cpu="1").json()],
    }
    found = explain_placed(read_objects(cluster), [default_profile()], "default/p", 0.0)
    assert (found["pod"], found["outcome"], found["node"]) == ("default/p", "placed", "n1")
    assert (found["why"]["feasible"], found["why"]["refused"]) == (1, {"NodeResourcesFit": 1})
    assert found["why"]["note"].startswith("worked out as of now, with no record of the decision (only the scheduler")
    with pytest.raises(KeyError):
        explain_placed(read_objects(cluster), [default_profile()], "default/waits", 0.0)


def test_a_gangs_member_of_a_dump_is_judged_with_the_others_in_place() -> None:
    cluster = {
        "nodes": [make_node("n1").capacity(cpu="4", pods="9").json()],
        "pods": [
            make_pod(name).req(cpu="2").labels({"gang": "g", "min": "2"}).node("n1").json() for name in ("a", "b")
        ],
    }
    found = explain_placed(read_objects(cluster), [profile(gangs=(Label(),))], "default/b", 0.0)
    assert found["why"]["note"].endswith("it would be placed here again")
