"""`GET /debug/pods/NS/NAME`: what the running scheduler tells of one pod."""

from __future__ import annotations

import json

import pytest

from policyengine.scheduler.messages import BindSucceeded
from policyengine.server.debug import pod_timeline
from tests.scheduler.driver import Driver, node, pod


def test_a_waiting_pod_tells_where_it_is_and_why() -> None:
    driver = Driver()
    driver.see(node("n1", cpu="2"), pod("p", cpu="4"))
    driver.cycle()
    told = pod_timeline(driver.state, "default", "p")
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
    assert [pod_timeline(driver.state, "default", name)["position"] for name in ("b", "a")] == [0, 1]
    assert pod_timeline(driver.state, "default", "a")["queue"]["active"] == 2


def test_a_bound_pod_tells_what_woke_it_and_where_it_runs() -> None:
    driver = Driver()
    running = pod("running", cpu="4").node("n1")
    driver.see(node("n1", cpu="4"), running, pod("p", cpu="2"))
    driver.cycle()
    driver.see(running.phase("Succeeded"))
    driver.now += 7.0
    driver.cycle()
    driver.send(BindSucceeded("p"))
    told = pod_timeline(driver.state, "default", "p")
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
    told = pod_timeline(driver.state, "default", "p")
    assert (told["policy"], told["place"], told["queue"]) == (None, "unserved", {})


def test_a_pod_nobody_knows() -> None:
    with pytest.raises(KeyError):
        pod_timeline(Driver().state, "default", "p")
