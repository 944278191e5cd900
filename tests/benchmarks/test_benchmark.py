"""What the benchmark counts, and that it counts right; no time is asserted."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import records
from benchmarks.audit import AuditedCore, WrongDecision, check
from benchmarks.cluster import Placed, Watcher, _Meta, _Spec
from benchmarks.decisions import EPOCH, decisions, memory, nodes_of, pods_of
from benchmarks.devices import devices
from benchmarks.end_to_end import Contestant, run_embedded
from benchmarks.figures import Figure, Samples, Spread, percentile, rate
from benchmarks.language import LINES, language, policy_text
from benchmarks.measure import PARTS
from benchmarks.peers import peer_of
from benchmarks.plan import plans
from benchmarks.processes import ChildFailed
from benchmarks.queue import queue
from benchmarks.recording import recording
from benchmarks.reload import reloads
from benchmarks.report import TITLES, sections
from benchmarks.scheduler_perf import WORKLOADS
from benchmarks.server import server
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import checked, compile_text
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import BindSucceeded, CacheSynced, CyclesRequested, NodeObserved, PodObserved
from policyengine.scheduler.state import SchedulerState
from tests.benchmarks import results
from tests.scheduler.invariants import validate

TINY = WORKLOADS["peer-basic"].sized(12, 30)


def test_a_rate_is_from_the_first_bind_to_the_last() -> None:
    assert rate([10.0, 10.5, 11.0]) == 2.0
    assert rate([10.0]) == 0.0


def test_only_full_seconds_are_samples() -> None:
    samples = Samples.of([0.0, 0.1, 0.9, 1.5, 2.2, 2.3, 2.4])
    assert samples.series == (3, 1, 3)
    assert (samples.minimum, samples.p99) == (1, 3)


# Figures


@given(st.lists(st.floats(0, 300), min_size=1, max_size=60).map(sorted))
def test_no_bind_is_lost_between_the_seconds(times: list[float]) -> None:
    assert sum(Samples.of(times).series) == len(times)


@given(st.lists(st.integers(0, 10**9), min_size=1), st.floats(0, 100))
def test_a_percentile_is_one_of_the_values_and_grows(values: list[int], percent: float) -> None:
    ordered = sorted(values)
    assert percentile(ordered, percent) in values
    assert percentile(ordered, percent) <= percentile(ordered, 100) == ordered[-1]


def test_a_spread_is_in_microseconds() -> None:
    assert Spread.of([3_000, 1_000, 2_000]) == Spread(2.0, 3.0, 3.0, 3)
    assert Spread.of([]).count == 0


def test_the_peer_s_figures_count_only_at_their_own_size() -> None:
    peer = peer_of("peer-affinity", 5_000, 5_000)
    assert peer is not None and peer.binds_per_second == 70
    assert peer_of("peer-affinity", 5_000, 4_999) is None


# Decisions, checked


def filled() -> SchedulerState:
    state = SchedulerState([default_profile()])
    for node in nodes_of(TINY):
        state.handle(NodeObserved(node), EPOCH)
    for pod in pods_of(TINY, "default-scheduler"):
        state.handle(PodObserved(pod), EPOCH)
    state.handle(CacheSynced(), EPOCH)
    return state


def test_an_audited_core_decides_as_one_that_is_not() -> None:
    plain, state = filled(), filled()
    audited = AuditedCore(state, every=7)
    expected = [action for action in plain.handle(CyclesRequested(30), EPOCH) if isinstance(action, Bind)]
    found: list[Bind] = []
    while audited.ready:
        found += [action for action in audited.handle(CyclesRequested(8), EPOCH) if isinstance(action, Bind)]
    assert found == expected
    assert audited.checks >= 3
    validate(state)


def test_a_decision_that_is_not_the_best_is_found() -> None:
    state = filled()
    (bind,) = [one for one in state.handle(CyclesRequested(1), EPOCH) if isinstance(one, Bind)]
    check(state, bind)
    state.handle(BindSucceeded(bind.uid), EPOCH)
    (second,) = [one for one in state.handle(CyclesRequested(1), EPOCH) if isinstance(one, Bind)]
    assert second.node != bind.node
    taken = Bind(second.uid, second.namespace, second.name, bind.node, second.policy_hash)
    with pytest.raises(WrongDecision, match="another node has"):
        check(state, taken)


def test_among_equals_only_the_one_the_hash_names_is_right() -> None:
    state = filled()
    (bind,) = [one for one in state.handle(CyclesRequested(1), EPOCH) if isinstance(one, Bind)]
    other = next(name for name in state.view.nodes.names if name != bind.node)
    with pytest.raises(WrongDecision, match=f"its hash names `{bind.node}`"):
        check(state, Bind(bind.uid, bind.namespace, bind.name, other, bind.policy_hash))


def test_a_node_that_refuses_the_pod_is_found() -> None:
    state = filled()
    (bind,) = [one for one in state.handle(CyclesRequested(1), EPOCH) if isinstance(one, Bind)]
    other = next(node for node in nodes_of(TINY) if node.metadata.name != bind.node)
    closed = msgspec.structs.replace(other, spec=msgspec.structs.replace(other.spec, unschedulable=True))
    metadata = msgspec.structs.replace(other.metadata, resource_version="9000000")
    state.handle(NodeObserved(msgspec.structs.replace(closed, metadata=metadata)), EPOCH)
    with pytest.raises(WrongDecision, match="a fresh evaluation refuses it"):
        check(state, Bind(bind.uid, bind.namespace, bind.name, other.metadata.name, bind.policy_hash))


def test_a_run_binds_and_checks_what_it_says() -> None:
    figures = decisions(TINY, default_profile())
    assert (figures.bound, figures.pods_per_node_max) == (30, 3)
    assert figures.decision.count == figures.pod_event.count == 30
    assert figures.node_event.count == 12
    assert figures.checks == 30  # fewer pods than checks: every one


def test_memory_counts_what_is_held() -> None:
    (held,) = memory(TINY, default_profile())
    assert held.what == "12 nodes and 30 pods held" and held.value > 10


# The language


@pytest.mark.parametrize("number", [0, 3])
def test_the_measured_policy_has_its_lines_and_no_finding(number: int) -> None:
    text = policy_text(LINES, number)
    assert len(text.splitlines()) == LINES
    assert checked(Source("bench.policy", text))[1] == []
    assert len(compile_text(text).profiles) == 1


def shown(what: str, found: list[Figure]) -> str:
    """What a terminal shows of a part; every number of it was measured."""
    assert all(row.value > 0 for row in found if "slower" not in row.what and "dearer" not in row.what), found
    (section,) = sections([results.rows(what, *found)])
    assert all(f"| {row.what}" in section for row in found)
    return section


def test_the_language_is_measured_in_full() -> None:
    section = shown("language", language(repeats=1, nodes=20))
    assert "| lint of 300 lines, warm, CPU" in section and "at most 150 ms" in section


def test_the_queue_is_measured_in_full() -> None:
    section = shown("queue", queue(pending=300, refused=20, gang=4, nodes=10))
    assert "| add a pod, 300 pending" in section and "| a gang of 4 on 10 nodes, placed" in section


def test_a_reload_is_measured_on_a_small_cluster() -> None:
    assert "| the swap, 10 pods waiting, CPU" in shown("reload", reloads(repeats=2, nodes=20, waiting=10))


def test_a_plan_is_measured_on_a_small_day_and_a_small_cluster() -> None:
    section = shown("plan", plans(nodes=5, pods=30, nodes_of_cluster=5))
    assert "| a day of 5 nodes and 30 pods, two policies: by the clock" in section and "at most 120 s" in section
    assert "| a cluster of 5 nodes and 30 pods, two policies: by the clock" in section and "at most 30 s" in section


def test_a_recording_is_measured_on_a_small_cluster() -> None:
    section = shown("recording", recording(nodes=20, seconds=2))
    assert "| 20 nodes and 100 pod events a second for 0 minutes, recorded" in section and "at most 30 MB" in section
    assert "| a pod event, in the files" in section and "at most 60 bytes" in section


def test_devices_are_measured_on_a_small_cluster() -> None:
    section = shown("devices", devices(nodes=20, each=2, later=2))
    assert "| the first decision, 40 devices 2 on each of 20 nodes, CPU" in section
    assert "| the first decision, 40 devices in a pool that 20 nodes reach, CPU" in section


async def test_the_server_is_measured_in_full() -> None:
    section = shown("server", await server(nodes=20, pods=30, bindings=200, runs=1))
    assert "| bindings, one watch attached" in section and "| events to 10 watchers" in section


def test_every_part_that_is_told_as_rows_has_a_section() -> None:
    assert set(PARTS) == set(TITLES)


# End to end, in processes


async def test_a_program_that_ends_early_is_told_with_its_last_words() -> None:
    wrong = Contestant("broken", command="sh -c 'echo RuntimeError: no luck >&2; exit 3'")
    with pytest.raises(ChildFailed, match="RuntimeError: no luck"):
        await run_embedded(TINY, wrong)


def test_pods_are_split_pod_by_pod() -> None:
    names = [pod["spec"]["schedulerName"] for pod in replace(TINY, schedulers=3).pod_objects("s")]
    assert names == ["s-0", "s-1", "s-2"] * 10
    assert {pod["spec"]["schedulerName"] for pod in TINY.pod_objects("s")} == {"s"}


# Several schedulers


def test_a_pod_that_is_bound_twice_is_seen() -> None:
    watcher = Watcher(None)  # type: ignore[arg-type]
    for node in ("", "node-1", "node-1", "node-2"):
        watcher._see(Placed(_Meta(name="pod-000000"), _Spec(node_name=node)))
    assert watcher.moved == ["pod-000000"]
    assert watcher.nodes == {"pod-000000": "node-1"} and len(watcher.times) == 1


# Records


def a_record(rate_of_ours: float = 500.0) -> records.Record:
    ours = results.run("policyengine", rate_of_ours, cpu_seconds=2.0)
    return results.ends(ours, results.run("limit", 1_000.0, cpu_seconds=1.0))


def other_record() -> records.Record:
    return results.rows("ratios", Figure("a decision", 2.0, "units"))


def test_ratios_are_costs_of_ours_over_the_other() -> None:
    assert a_record().ratios == {"time / limit": 2.0, "time to the last event / limit": 2.0, "cpu / limit": 2.0}


def test_no_ratio_counts_events_where_a_contestant_writes_none() -> None:
    silent = results.run("limit", 1_000.0, events_per_second=0.0)
    assert set(results.ends(results.run("policyengine", 1.0), silent).ratios) == {"time / limit", "cpu / limit"}


@pytest.mark.parametrize("rates", [(5.0, 1.0, 3.0, 9.0), (5.0, 1.0, 3.0)])
def test_the_median_run_is_one_of_the_runs(rates: tuple[float, ...]) -> None:
    record = results.ends(*(results.run("policyengine", rate) for rate in rates))
    assert records.middle_runs(record)["policyengine"]["binds_per_second"] == 3.0


def test_what_is_saved_is_read_back_and_saved_anew_replaced(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    other = other_record()
    records.save(file, [a_record(), other])
    records.save(file, [a_record(800.0)])
    found = records.load(file)
    assert [one.what for one in found] == ["end-to-end", "ratios"]
    assert found[0].ratios["time / limit"] == 1.25
    assert found[1].to_json() == json.loads(json.dumps(other.to_json()))


def test_a_ratio_that_grew_shows_by_how_much() -> None:
    (time, _, cpu) = records.compare([a_record(500.0)], a_record(400.0))
    assert (time.name, round(time.growth, 3)) == ("time / limit", 0.25)
    assert cpu.growth == 0.0


def test_nothing_in_common_is_no_verdict() -> None:
    with pytest.raises(records.UnusableRecords, match="no ratios of `ratios`"):
        records.compare([a_record()], other_record())


@pytest.mark.parametrize("text", ["", "[]", '{"records": [{"what": "x"}]}', '{"records": [1]}'])
def test_a_file_that_holds_no_results_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(records.UnusableRecords, match=r"results\.json"):
        records.load(file)
