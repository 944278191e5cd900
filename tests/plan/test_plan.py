"""Two policies on what happened: the plan of a recording is what a run with the other policy then does."""

from __future__ import annotations

from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec.structs import replace

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.workload_objects import Namespace
from policyengine.diagnosis.dump import DumpedObject
from policyengine.plan.comparison import compared
from policyengine.plan.history import History, read
from policyengine.plan.rerun import rerun
from policyengine.plan.snapshot import once_each
from policyengine.policy_compiler import compile_policy
from policyengine.recording.directory import Limits, RecordingDirectory
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import DirectRecording, Recorder
from policyengine.scheduler.messages import (
    CacheSynced,
    NodeDeleted,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    PodDeleted,
    PodObserved,
)
from policyengine.trials.simulation import Simulation
from tests.builders import make_node, make_pod

SPREAD = """policy "spread" { scheduler "s" base filters
  score "least" weight 9 = 100 * (1.0 - ratio(node.used.cpu, node.allocatable.cpu))
}"""
PACKED = """policy "packed" { scheduler "s" base filters
  queue { order by pod.priority desc, pod.requests.cpu desc }
  filter "few" { require node.podCount < 4 else "four pods are enough" }
  score "fullest" weight 9 = 100 * ratio(node.used.cpu, node.allocatable.cpu)
}"""
JEALOUS = """policy "jealous" { scheduler "s" base filters preempt { victims: victim.priority < 5 maxVictims: 2 }
  score "name" weight 1 = random() * 100
}"""
POLICIES = (SPREAD, PACKED, JEALOUS)


def world(random: Random) -> dict[str, Any]:
    """A scenario in which pods come, run and go, and nodes come and change."""
    pods = []
    for number in range(random.randint(2, 5)):
        template: dict[str, Any] = {
            "name": f"t{number}",
            "count": random.randint(3, 12),
            "every": f"{random.choice((1, 7, 30))}s",
            "at": f"{random.randrange(200)}s",
            "requests": {"cpu": random.choice(("250m", "1", "2")), "memory": "256Mi"},
        }
        if random.random() < 0.7:
            template["runs"] = f"{random.choice((40, 300))}s"
        if random.random() < 0.6:  # all are there before the first is made again: nobody could tell them apart
            template |= {"recreate": True, "at": f"{random.randrange(40)}s", "every": "1s"}
        pods.append(template)
    changes: list[dict[str, Any]] = [{"at": "2min", "cordon": "n-0"}, {"at": "4min", "uncordon": "n-0"}]
    changes += [{"at": "5min", "delete": "t0-1"}] * (random.random() < 0.5 and "recreate" not in pods[0])
    trouble: list[dict[str, Any]] = [{"drain": "n-1"}, {"fail": "n-0", "for": "400s"}, {"remove": "n-1"}]
    lost = random.sample(trouble, random.randint(0, 2))
    return {
        "start": "2026-01-05T00:00:00Z",
        "duration": "20min",
        "policies": [{"text": SPREAD}],
        "nodes": [{"name": "n", "count": random.randint(2, 4), "allocatable": {"cpu": 4, "memory": "8Gi"}}],
        "pods": pods,
        "changes": changes[: random.randint(0, 3)]
        + [{"at": f"{70 * number + 240}s", **change} for number, change in enumerate(lost)],
    }


def recorded(scenario: dict[str, Any], path: Path) -> History:
    recording = DirectRecording(path, "0", "run")
    Simulation(scenario, driven=recording.recorded).run()
    recording.close()
    return read(path)


def empties(scenario: dict[str, Any]) -> list[tuple[float, str]]:
    """When nodes are drained or given up."""
    at = [(float(one["at"][:-1]), one) for one in scenario["changes"] if "drain" in one or "fail" in one]
    return [(now + 300.0, one["fail"]) if "fail" in one else (now, one["drain"]) for now, one in at]


def fates(ledger: Any) -> dict[str, tuple[str, float | None, str, float | None]]:
    return {pod.name: (pod.node, pod.bound, pod.how, pod.ended) for pod in ledger.pods.values()}


@pytest.mark.parametrize("seed", range(24))
def test_the_plan_of_a_recording_is_what_the_policy_then_does(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    scenario = world(random)
    history = recorded(scenario, tmp_path)
    assert history.notes == []
    text = random.choice(POLICIES[:2])
    then = Simulation(scenario, [compile_policy(text)])
    then.run()
    planned = rerun(history, [compile_policy(text)])
    assert planned.end == then.play.at
    wanted = fates(then.play.ledger)
    found = fates(planned.ledger)
    # How long a pod runs is not known of one that still ran, or waited, when the recording ended: then what comes after
    # the moment at which it would have ended may differ.
    unknown = [name for name in wanted if wanted[name][2] == "finished" and found.get(name, ("",) * 3)[2] != "finished"]
    # Nor does a recording tell when a node was emptied on which nobody stood.
    emptied = {(at - history.start, node) for at, node in history.emptied}
    silent = [at for at, node in empties(scenario) if (at, node) not in emptied]
    until = min([wanted[uid][3] or 0.0 for uid in unknown] + silent, default=inf)

    def before(fates: dict[str, Any]) -> dict[str, Any]:
        return {
            name: (node, at, how if end is not None and end < until else "")
            for name, (node, at, how, end) in fates.items()
            if at is not None and at < until
        }

    assert before(found) == before(wanted)
    assert before(found)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_policy_again_changes_nothing(seed: int, tmp_path: Path) -> None:
    history = recorded(world(Random(seed)), tmp_path)
    profiles = list(history.profiles.values())
    one, other = rerun(history, profiles), rerun(history, profiles)
    found = compared(one, other)
    assert found.old == found.new
    assert (found.moved, found.newly_placed, found.newly_waiting, found.newly_evicted, found.longer) == (
        0,
        [],
        [],
        [],
        [],
    )


def test_an_evicted_pod_and_what_its_controller_made_are_one(tmp_path: Path) -> None:
    scenario = {
        "duration": "20min",
        "policies": [{"text": JEALOUS}],
        "nodes": [{"name": "n", "count": 1, "allocatable": {"cpu": 2}}],
        "pods": [
            {"name": "low", "requests": {"cpu": 2}, "recreate": True, "runs": "4min"},
            {"name": "high", "at": "1min", "requests": {"cpu": 2}, "priority": 9, "runs": "2min"},
        ],
    }
    history = recorded(scenario, tmp_path)
    low, high = history.pods
    assert (low.pod.metadata.name, high.pod.metadata.name) == ("low", "high")
    assert (low.ran, high.ran) == (240.0, 120.0)
    calm = rerun(history, [compile_policy(SPREAD.replace("base filters", "base none"))])
    assert [(pod.name, pod.bound, pod.how) for pod in calm.ledger.pods.values()] == [
        ("default/low", 0.0, "finished"),
        ("default/high", 60.0, "finished"),
    ]
    again = rerun(history, list(history.profiles.values()))
    assert [(pod.name, pod.how) for pod in again.ledger.pods.values()] == [
        ("default/low", "preempted"),
        ("default/high", "finished"),
        ("default/low-r1", "finished"),
    ]


def test_of_several_runs_what_a_later_one_does_not_list_any_more_is_gone(tmp_path: Path) -> None:
    for run, names in (("first", ("a", "b")), ("second", ("b", "c"))):
        served = [compile_policy(SPREAD.replace('"s"', f'"{run}"'))]
        directory, recorder = RecordingDirectory(tmp_path), Recorder(Began("0", run, watched_only=True), served)
        start = 1_767_600_000.0 + 100.0 * (run == "second")
        for name in names:
            recorder.told(start, NodeObserved(make_node(f"n-{name}").allocatable(cpu="4", pods="9").build()))
            recorder.told(start, PodObserved(make_pod(name).node(f"n-{name}").build()))
            recorder.told(start, ObjectObserved("Namespace", decode(Namespace, {"metadata": {"name": name}})))
        recorder.told(start, CacheSynced())
        directory.write(recorder.take(), 0.0)
        directory.close()
    history = read(tmp_path)
    a, b, c = history.pods
    assert [past.pod.metadata.name for past in (a, b, c)] == ["a", "b", "c"]
    assert (a.came, b.deleted, c.deleted) == (history.start, None, None)
    assert a.had_to_go  # its node went with it
    assert c.pod.spec.node_name == "n-c"
    assert [one.name for _, one in history.changes if isinstance(one, NodeDeleted | ObjectDeleted)] == ["n-a", "a"]
    assert (history.end - history.start, history.notes) == (100.0, [])
    assert list(history.profiles) == ["second"]


def test_runs_of_two_simulations_in_one_recording_are_told_apart(tmp_path: Path) -> None:
    days = [{"duration": "1h", "nodes": [{"name": "n"}], "pods": [{"name": name}]} for name in ("a", "b")]
    for start, day in zip(("2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"), days, strict=True):
        history = recorded({**day, "start": start}, tmp_path)
    assert (history.end - history.start, history.notes) == (25 * 3600.0, [])
    assert [type(change).__name__ for _, change in history.changes] == ["NodeObserved", "NodeDeleted", "NodeObserved"]
    assert len({past.pod.metadata.uid for past in history.pods}) == 2


def test_what_is_written_with_a_binding_is_no_edit_and_what_somebody_writes_later_is(tmp_path: Path) -> None:
    recorder = Recorder(Began("0", "run", watched_only=True))
    recorder.told(0.0, CacheSynced())
    for at, pod in enumerate(
        (
            make_pod("p"),
            make_pod("p").node("n").annotation("by", "the policy"),
            make_pod("p").node("n").annotation("by", "the policy").label("tier", "gold"),
        )
    ):
        recorder.told(float(at), PodObserved(pod.build()))
    directory = RecordingDirectory(tmp_path)
    directory.write(recorder.take(), 0.0)
    directory.close()
    (past,) = read(tmp_path).pods
    assert [(at, pod.metadata.labels) for at, pod in past.edits] == [(2.0, {"tier": "gold"})]


def test_the_figures_tell_who_waits_and_who_is_refused_by_whom(tmp_path: Path) -> None:
    scenario = {
        "duration": "10min",
        "policies": [{"text": SPREAD}],
        "nodes": [{"name": "n", "count": 1, "allocatable": {"cpu": 8}}],
        "pods": [{"name": "p", "count": 6, "requests": {"cpu": 1}}],
    }
    history = recorded(scenario, tmp_path)
    old, new = (rerun(history, [compile_policy(text)]) for text in (SPREAD, PACKED))
    found = compared(old, new)
    assert (found.old["waiting"], found.new["waiting"]) == (0, 2)
    assert [(one.old, one.new) for one in found.newly_waiting] == [("n", "waits")] * 2
    assert found.newly_waiting[0].why.startswith("0/1 nodes are available: 1 four pods are enough")
    assert found.refused_by == {"few": (0, 2)}
    assert found.new["wait"]["max"] == 600.0
    assert found.old["utilisation"]["cpu"] == 0.75
    assert found.new["utilisation"]["cpu"] == 0.5


def lived(*told: tuple[float, Pod | Node | PodDeleted]) -> History:
    """The history of what a scheduler is told, at these seconds."""
    with TemporaryDirectory() as folder:
        directory = RecordingDirectory(Path(folder) / "day", Limits(file_age=inf))
        recorder = Recorder(Began("0", "run", watched_only=True))
        recorder.told(0.0, CacheSynced())
        for now, one in told:
            seen = PodObserved(one) if isinstance(one, Pod) else NodeObserved(one) if isinstance(one, Node) else one
            recorder.told(now, seen)
        while entries := recorder.take():
            directory.write(entries, 0.0)
        directory.close()
        return read(Path(folder) / "day")


WISHES = """policy "wishes" { scheduler "default-scheduler" base filters
  score "wish" weight 9 = node.labels[?"wants"].orValue("") == pod.labels[?"app"].orValue("-") ? 100.0 : 0.0
}"""


@pytest.mark.parametrize("reason", ["EvictionByEvictionAPI", "DeletionByTaintManager", "PreemptionByScheduler"])
def test_who_stands_on_a_node_when_it_is_emptied_has_to_go(reason: str) -> None:
    """`web` stood on a, which was emptied; under the new policy `db` does, and a pod that tolerates the taint."""
    nodes = {
        name: make_node(name).allocatable(cpu="4", pods="9").label("wants", app)
        for name, app in (("a", "db"), ("b", "web"))
    }
    pods = {app: make_pod(app).label("app", app).owner("ReplicaSet", app) for app in ("web", "db", "calm")}
    pods["calm"].toleration("broken", operator="Exists").label("app", "db")
    agent = make_pod("agent").owner("DaemonSet", "agent")
    agent.node_affinity(("metadata.name", "In", ["a"]), fields=True)
    came = [(10.0, nodes[name].build()) for name in "ab"] + [(20.0, pod.build()) for pod in (*pods.values(), agent)]
    bound = [(20.0, pods["web"].node("a").build())] + [(20.0, pods[app].node("b").build()) for app in ("db", "calm")]
    if reason == "DeletionByTaintManager":
        nodes["a"].taint("broken", effect="NoExecute")
    else:
        nodes["a"].unschedulable()
    going = pods["web"].condition("DisruptionTarget", "True", reason)
    emptied = [(100.0, nodes["a"].build()), (100.0, going.build()), (130.0, going.deleting().build())]
    again = [
        (130.0, PodDeleted("default", "web", "web")),
        (131.0, make_pod("web-2").owner("ReplicaSet", "web").build()),
    ]
    history = lived(*came, *bound, *emptied, *again, (900.0, nodes["b"].label("day", "over").build()))
    planned = rerun(history, [compile_policy(WISHES)])
    found = {pod.name.removeprefix("default/"): (pod.node, pod.how) for pod in planned.ledger.pods.values()}
    left = {"web": ("b", ""), "agent": ("a", "")}
    gone = {app: {app: ("a", "drained"), f"{app}-r1": ("b", "")} for app in ("db", "calm")}
    assert (
        found
        == left
        | {
            "EvictionByEvictionAPI": gone["db"] | gone["calm"],
            "DeletionByTaintManager": {"calm": ("a", ""), "db": ("a", "lost"), "db-r1": ("b", "")},
            "PreemptionByScheduler": {"db": ("a", ""), "calm": ("a", "")},
        }[reason]
    )


def test_a_pod_that_leaves_its_node_and_was_never_being_deleted_has_finished() -> None:
    """As a scheduler sees it, which does not watch finished pods."""
    waiting, running = make_pod("p").uid("u").build(), make_pod("p").uid("u").node("n").build()
    gone = PodDeleted("default", "p", "u")
    (ended,) = lived((10.0, waiting), (20.0, running), (50.0, gone)).pods
    assert (ended.ran, ended.finished) == (30.0, 50.0)
    metadata = replace(running.metadata, deletion_timestamp="2026-01-05T00:00:00Z")
    deleted = replace(running, metadata=metadata)
    (one,) = lived((10.0, waiting), (20.0, running), (40.0, deleted), (50.0, gone)).pods
    assert (one.ran, one.deleted) == (None, 50.0)
    (never,) = lived((10.0, waiting), (50.0, gone)).pods
    assert (never.ran, never.deleted) == (None, 50.0)


def test_a_clock_that_goes_back_is_told_and_what_follows_is_counted_on_from_there() -> None:
    pods = [make_pod(name).uid(name).build() for name in "abc"]
    history = lived((10.0, pods[0]), (20.0, pods[1]), (5.0, pods[2]), (8.0, PodDeleted("default", "a", "a")))
    assert [past.came for past in history.pods] == [10.0, 20.0, 20.0]
    assert (history.pods[0].deleted, history.end) == (23.0, 23.0)
    assert history.notes == ["the recorded clock goes back once, by 15s in all; what follows is counted on from there"]


def test_of_a_dump_taken_in_the_middle_of_a_change_each_object_counts_once() -> None:
    moved = make_pod("p").uid("u").node("gone")
    objects = [
        make_node("a"),
        make_node("a").allocatable(cpu="4"),
        make_pod("p").uid("u"),
        moved,
        make_pod("q").uid("v"),
    ]
    dumped = [DumpedObject(one.json()["kind"], one.build()) for one in objects]
    found, notes = once_each(dumped)
    assert [(one.kind, one.object.metadata.name) for one in found] == [("Node", "a"), ("Pod", "p"), ("Pod", "q")]
    assert found[1].object.spec.node_name == "gone"
    assert notes == [
        "2 of the objects stand in the dump more than once; the last of each counts",
        "the dump lacks the nodes of 1 pod, such as `default/p` on `gone`",
    ]
