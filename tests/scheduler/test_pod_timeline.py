from policyengine.scheduler.messages import BindSucceeded
from policyengine.scheduler.pod_timeline import PodTimelines
from tests.scheduler.driver import Driver, node, pod


def test_a_pod_tells_its_whole_way():
    driver = Driver()
    running = pod("running", cpu="4").node("n1")
    driver.see(node("n1", cpu="4"), running, pod("p", cpu="2"))
    driver.cycle()
    driver.now += 7.0
    driver.see(running.phase("Succeeded"))
    driver.cycle()
    driver.send(BindSucceeded("p"))
    lines = driver.state.timeline("p")
    assert driver.told("p") == ["queued", "attempted", "refused", "woken", "attempted", "reserved", "bound"]
    assert lines[2].details["by"] == frozenset({"NodeResourcesFit"})
    assert lines[2].details["policy hash"] == driver.state.profiles[0].policy_hash
    assert (lines[3].details["event"], lines[3].details["asked by"]) == ("AssignedPodDelete", "NodeResourcesFit")
    assert lines[3].at == driver.now
    assert "by NodeResourcesFit" in str(lines[2])
    assert "message 0/1 nodes are available: 1 Insufficient cpu." in str(lines[2])


def test_positions_are_visible():
    driver = Driver().showing(pod("a").priority(1), pod("b").priority(2))
    assert [driver.state.queue_position(name) for name in ("b", "a", "unknown")] == [0, 1, None]


def test_it_keeps_only_the_last_lines_of_the_last_pods():
    timeline = PodTimelines(pods=2, lines=3)
    for number in range(5):
        timeline.record("a", float(number), "attempted", number, "hash")
    assert [line.at for line in timeline.of("a")] == [2.0, 3.0, 4.0]
    timeline.record("b", 9.0, "queued", "active", "")
    timeline.record("c", 9.0, "queued", "active", "")
    assert timeline.of("a") == []
    assert [str(line) for line in timeline.of("c")] == ["queued: place active"]


def test_pods_that_are_refused_again_and_again_leave_room_for_fewer_histories():
    timeline = PodTimelines(lines=3, all_lines=7)
    for uid in ("a", "b", "c"):
        for number in range(5):
            timeline.record(uid, float(number), "attempted", number, "hash")
    assert [len(timeline.of(uid)) for uid in ("a", "b", "c")] == [0, 3, 3]
    timeline.record("d", 9.0, "queued", "active", "")
    assert [len(timeline.of(uid)) for uid in ("b", "c", "d")] == [3, 3, 1]
    timeline.record("a", 9.0, "woken", "active", "", ())
    assert [len(timeline.of(uid)) for uid in ("b", "c", "d", "a")] == [0, 3, 1, 1]


def test_a_pod_that_is_told_of_again_stays_and_the_others_go():
    timeline = PodTimelines(pods=2, lines=3, all_lines=4)
    timeline.record("old", 0.0, "queued", "active", "")
    timeline.record("done", 1.0, "bound", "n1", "hash")
    for number in range(3):
        timeline.record("old", 2.0 + number, "attempted", number, "hash")
    assert [line.at for line in timeline.of("old")] == [2.0, 3.0, 4.0] and len(timeline.of("done")) == 1
    timeline.record("new", 9.0, "queued", "active", "")
    assert [len(timeline.of(uid)) for uid in ("old", "done", "new")] == [3, 0, 1]
