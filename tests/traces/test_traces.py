"""Traces from elsewhere as recordings."""

from __future__ import annotations

import errno
import gzip
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from policyengine.commands.main import cli
from policyengine.plan.history import PastPod, read
from policyengine.plan.rerun import rerun
from policyengine.policy_compiler import compile_policy
from policyengine.recording.segment import SegmentWriter
from policyengine.scheduler.messages import NodeObserved, ObjectObserved
from policyengine.traces import swf
from policyengine.traces.mapping import openb
from policyengine.traces.mapping import read as read_mapping
from policyengine.traces.writing import TraceError
from tests.shared_facts import SHARED

MAPPING = """
start: 2026-01-05T00:00:00Z
nodes: {count: 2, name: node, allocatable: {cpu: {value: 16}, memory: {value: 64Gi}}}
pods:
  file: 1
  name: {column: job}
  namespace: {column: team}
  at: {column: submitted}
  started: {column: begun}
  runs: {column: minutes, factor: 60}
  priority: {column: weight}
  requests: {cpu: {column: cores}, memory: {column: mib, unit: Mi}, example.com/gpu: {column: gpus, times: nodes}}
  labels: {queue: {column: queue}}
  on: {kind: {column: kinds}}
"""
TABLE = """job,team,submitted,begun,minutes,weight,cores,mib,gpus,nodes,queue,kinds
a,red,0,5,2,3,0.5,512,2,2,fast,small|large
b,blue,10,,,0,1,100,0,1,,
"""
JOBS = """; Version: 2.2
; MaxNodes: 4
; MaxProcs: 32
; UnixStartTime: 1000000000
1 0 10 100 4 -1 1024 4 -1 -1 1 7 1 1 2 -1 -1 -1
2 50 0 60 20 -1 -1 20 -1 -1 1 -1 1 1 -1 -1 -1 -1

3 60 -1 -1 -1 -1 -1 -1 -1 -1 5 7 1 1 2 -1 -1 -1
4 70 5 -1 2 -1 -1 2 -1 2048 0 7 1 1 2 -1 -1 -1
"""


def brought(folder: Path, form: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["import", form, *arguments, "-o", str(folder / "out")])


def pods(folder: Path) -> dict[str, PastPod]:
    return {past.pod.metadata.name: past for past in read(folder / "out").pods}


def test_a_table_is_read_as_its_mapping_says(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(MAPPING)
    with gzip.open(tmp_path / "jobs.csv.gz", "wt") as file:
        file.write(TABLE)
    done = brought(tmp_path, "csv", str(tmp_path / "jobs.csv.gz"), "--mapping", str(tmp_path / "map.yaml"))
    assert (done.exit_code, done.stdout) == (0, f"2 pods in {tmp_path / 'out'}\n")
    history, found = read(tmp_path / "out"), pods(tmp_path)
    assert [one.node.metadata.name for _, one in history.changes if isinstance(one, NodeObserved)] == [
        "node-0",
        "node-1",
    ]
    a, b = found["a"], found["b"]
    assert (a.came, a.bound, a.ran) == (history.start, history.start + 5.0, 120.0)
    assert (b.came, b.bound, b.ran) == (history.start + 10.0, None, None)
    assert (a.pod.metadata.namespace, a.pod.spec.priority, a.pod.metadata.labels) == ("red", 3, {"queue": "fast"})
    assert a.pod.spec.containers[0].resources.requests == {
        "cpu": "0.500000", "memory": "512Mi", "example.com/gpu": "4",
    }  # fmt: skip
    assert b.pod.spec.containers[0].resources.requests == {"cpu": "1", "memory": "100Mi"}
    affinity = a.pod.spec.affinity
    assert affinity is not None and affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    (term,) = required.node_selector_terms
    assert [(one.key, one.operator, one.values) for one in term.match_expressions] == [
        ("kind", "In", ("small", "large"))
    ]
    assert b.pod.spec.affinity is None


def test_jobs_of_the_standard_workload_format(tmp_path: Path) -> None:
    (tmp_path / "jobs.swf").write_text(JOBS)
    assert brought(tmp_path, "swf", str(tmp_path / "jobs.swf")).exit_code == 0
    history, found = read(tmp_path / "out"), pods(tmp_path)
    assert history.start == 1_000_000_000.0
    assert [one.node.status.allocatable["cpu"] for _, one in history.changes if isinstance(one, NodeObserved)] == [
        "8"
    ] * 4
    # 20 processors are more than a node's 8: three pods, which come together or not at all.
    assert sorted(found) == ["job-1", "job-2-0", "job-2-1", "job-2-2", "job-4"]
    assert [found[f"job-2-{n}"].pod.spec.containers[0].resources.requests["cpu"] for n in range(3)] == ["7", "7", "6"]
    (group,) = (one for _, one in history.changes if isinstance(one, ObjectObserved))
    assert (group.kind, group.object.spec.min_member) == ("PodGroup", 3)
    one, four = found["job-1"], found["job-4"]
    assert (one.came - history.start, one.bound, one.ran) == (0.0, history.start + 10.0, 100.0)
    assert one.pod.spec.containers[0].resources.requests == {"cpu": "4", "memory": "4096Ki"}
    assert one.pod.metadata.namespace == "user-7"
    assert (four.bound, four.ran) == (None, None)


def test_jobs_come_through_a_pipe_with_comments_in_any_encoding_and_numbers_that_come_again(tmp_path: Path) -> None:
    parts = "5 70 0 90 2 -1 -1 2 -1 -1 1 7 1 1 2 -1 -1 -1\n5 -1 0 40 2 -1 -1 2 -1 -1 2 7 1 1 2 -1 -1 -1\n"
    again = "2 80 0 60 30 -1 -1 30 -1 -1 1 -1 1 1 -1 -1 -1 -1\n"
    os.mkfifo(tmp_path / "jobs.swf")
    text = f"{JOBS}{parts}{again}; Université\n".encode("latin-1")
    with ThreadPoolExecutor() as pool:
        pool.submit((tmp_path / "jobs.swf").write_bytes, text)
        done = brought(tmp_path, "swf", str(tmp_path / "jobs.swf"))
    assert done.exit_code == 0, done.output
    line = text[: text.index(again.encode())].count(b"\n") + 1
    assert sorted(set(pods(tmp_path)) - {"job-1", "job-4", "job-2-0", "job-2-1", "job-2-2"}) == [
        *(f"job-2-line-{line}-{member}" for member in range(4)),
        "job-5",
    ]
    groups = [one.object for _, one in read(tmp_path / "out").changes if isinstance(one, ObjectObserved)]
    assert [(one.metadata.name, one.spec.min_member) for one in groups] == [("job-2", 3), (f"job-2-line-{line}", 4)]


def test_a_folder_that_may_not_be_looked_into_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "is_dir", refused)
    done = brought(tmp_path, "swf", "jobs.swf")
    assert (done.exit_code, done.stderr) == (2, f"Error: cannot write `{tmp_path / 'out'}`: permission denied\n")


def test_a_table_that_is_empty_by_the_time_it_is_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(MAPPING)
    (tmp_path / "jobs.csv").touch()
    done = brought(tmp_path, "csv", str(tmp_path / "jobs.csv"), "--mapping", str(tmp_path / "map.yaml"))
    assert done.stderr.endswith("Error: jobs.csv is empty, or a pipe that was read already for the nodes\n")


def test_nothing_is_left_of_an_import_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "jobs.swf").write_text(JOBS)
    with monkeypatch.context() as patched:
        patched.setattr(SegmentWriter, "frame", full)
        assert brought(tmp_path, "swf", str(tmp_path / "jobs.swf")).exit_code == 2
    assert brought(tmp_path, "swf", str(tmp_path / "jobs.swf")).exit_code == 0


@pytest.mark.skipif(not (SHARED / "traces" / "openb").is_dir(), reason="the traces are not there")
def test_the_openb_trace_is_one_recording_to_the_byte_and_one_run_of_a_shipped_policy_to_the_digest(
    tmp_path: Path,
) -> None:
    tables = [str(SHARED / "traces" / "openb" / name) for name in ("nodes.csv.gz", "pods-default.csv.gz")]
    outs = [tmp_path / "one", tmp_path / "other"]
    for out in outs:
        done = CliRunner().invoke(cli, ["import", "openb", *tables, "--scheduler", "bin-packing", "-o", str(out)])
        assert done.stdout == f"8,152 pods in {out}\n"
    first, second = ((out / "000001.recording").read_bytes() for out in outs)
    assert first == second
    assert len(first) < 1 << 20
    policy = Path(__file__).resolve().parents[2] / "policies" / "bin-packing.policy"
    history = read(outs[0])
    assert len(history.pods) == 8152
    first_pods = replace(history, pods=history.pods[:2000])
    run = rerun(first_pods, [compile_policy(policy.read_text(encoding="utf-8"))])
    fates = "".join(f"{pod.uid} {pod.node} {pod.bound} {pod.how} {pod.ended}\n" for pod in run.ledger.pods.values())
    assert len(run.ledger.pods) == 2000
    assert blake2b(fates.encode(), digest_size=8).hexdigest() == "11d2c797b3be98ed"


def test_the_mapping_of_openb_is_one() -> None:
    assert openb()["pods"]["file"] == 2


@pytest.mark.parametrize(
    ("mapping", "table", "message"),
    [
        (
            MAPPING,
            TABLE.replace("a,red,0", "a,red,soon"),
            "jobs.csv, line 2: `soon` in column `submitted` is no number",
        ),
        (MAPPING, TABLE.replace("a,red,0", "a,red,"), "jobs.csv, line 2: there is no time at which the pod came"),
        (MAPPING, TABLE.replace("0.5,512", "-1,512"), "jobs.csv, line 2: cpu is less than nothing"),
        (MAPPING, TABLE.replace("team", "group"), "jobs.csv, line 2: there is no column `team`; there are job, group"),
        (MAPPING.replace("file: 1", "file: 2"), TABLE, "the mapping reads table 2, and 1 were given"),
        (MAPPING.replace("name: {column: job}", "nam: {column: job}"), TABLE, "line "),
        (MAPPING.replace("2026-01-05T00:00:00Z", "monday"), TABLE, "`start` is `monday`"),
        ("[]", TABLE, "map.yaml`: "),
        (
            MAPPING.replace("cpu: {value: 16}", "cpu: {value: manym}"),
            TABLE,
            "nodes: cpu: `manym` is not a quantity; write a number such as 100m or 2Gi",
        ),
        (
            MAPPING.replace("cpu: {column: cores}", "cpu: {value: 8GB}"),
            TABLE,
            "jobs.csv, line 2: cpu: `8GB` is not a quantity; write `8G`",
        ),
        (MAPPING.replace("cpu: {value: 16}", "cpu: {value: -16}"), TABLE, "nodes: cpu is less than nothing"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(tmp_path: Path, mapping: str, table: str, message: str) -> None:
    (tmp_path / "map.yaml").write_text(mapping)
    (tmp_path / "jobs.csv").write_text(table)
    done = brought(tmp_path, "csv", str(tmp_path / "jobs.csv"), "--mapping", str(tmp_path / "map.yaml"))
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["openb", "a"], "give NODES and PODS"),
        (["swf", "a", "b"], "give the file of jobs"),
        (["csv", "a"], "--mapping is for csv, and csv needs it"),
        (["swf", "nothing.swf"], "cannot read `nothing.swf`"),
    ],
)
def test_what_is_missing_is_told(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = brought(tmp_path, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x1f\x8b\x08\x00", b"\x1f\x8b rubbish"])
def test_a_file_that_is_no_text_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "jobs").write_bytes(content)
    (tmp_path / "map.yaml").write_text(MAPPING)
    for form, *more in (
        ["swf"],
        ["csv", "--mapping", str(tmp_path / "map.yaml")],
        ["csv", "--mapping", str(tmp_path / "jobs")],
    ):
        done = brought(tmp_path, form, str(tmp_path / "jobs"), *more)
        assert done.exit_code == 2, done.output
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("mine")
    (tmp_path / "jobs.swf").write_text(JOBS)
    assert "is not empty" in brought(tmp_path, "swf", str(tmp_path / "jobs.swf")).stderr


def test_a_job_that_the_machine_cannot_hold_is_told_and_takes_no_memory() -> None:
    line = f"1 0 0 10 {10**12} -1 -1 {10**12} -1 -1 1 1 1 1 1 -1 -1 -1"
    with pytest.raises(TraceError, match="line 1: the job asks for 1000000000000 processors; 4 nodes have 8 each"):
        list(swf.pods_of([line], swf.Machine(4, 8, 0.0)))


@pytest.mark.parametrize("at", ["1e300", "-5", "1e11"])
def test_a_time_that_cannot_be_is_told(tmp_path: Path, at: str) -> None:
    (tmp_path / "map.yaml").write_text(MAPPING)
    (tmp_path / "jobs.csv").write_text(TABLE.replace("a,red,0,5", f"a,red,{at},5"))
    done = brought(tmp_path, "csv", str(tmp_path / "jobs.csv"), "--mapping", str(tmp_path / "map.yaml"))
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert "pod `a`: its times are not between" in done.stderr
    (tmp_path / "jobs.csv").write_text(TABLE)  # mended: what the first try left is in nobody's way
    again = brought(tmp_path, "csv", str(tmp_path / "jobs.csv"), "--mapping", str(tmp_path / "map.yaml"))
    assert again.exit_code == 0, again.stderr


@pytest.mark.parametrize("start", ["1969-12-31T00:00:00Z", "9999-12-31T00:00:00Z", "0001-01-01T00:00:00+09:00"])
def test_a_trace_that_starts_at_no_time_of_a_recording_is_refused(tmp_path: Path, start: str) -> None:
    (tmp_path / "map.yaml").write_text(MAPPING.replace("2026-01-05T00:00:00Z", start))
    (tmp_path / "jobs.csv").write_text(TABLE)
    done = brought(tmp_path, "csv", str(tmp_path / "jobs.csv"), "--mapping", str(tmp_path / "map.yaml"))
    assert done.exit_code == 2
    assert "the trace starts before 1970, or later" in done.stderr


def test_a_table_may_begin_with_a_mark_and_times_without_a_zone_are_in_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    (tmp_path / "map.yaml").write_text(MAPPING.replace("00:00:00Z", "00:00:00"))
    (tmp_path / "jobs.csv").write_text(TABLE, encoding="utf-8-sig")
    done = brought(tmp_path, "csv", str(tmp_path / "jobs.csv"), "--mapping", str(tmp_path / "map.yaml"))
    monkeypatch.undo()
    time.tzset()
    assert done.exit_code == 0, done.stderr
    assert read(tmp_path / "out").start == 1_767_571_200.0


def test_where_the_recording_cannot_be_written_it_is_what_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs.swf").write_text(JOBS)
    (tmp_path / "file").touch()
    done = CliRunner().invoke(cli, ["import", "swf", str(tmp_path / "jobs.swf"), "-o", str(tmp_path / "file" / "out")])
    assert (done.exit_code, done.stderr) == (2, f"Error: cannot write `{tmp_path}/file/out`: not a directory\n")


def test_a_name_that_comes_again_is_another_pod(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(MAPPING)
    (tmp_path / "jobs.csv").write_text(TABLE + TABLE.splitlines()[1] + "\n")
    brought(tmp_path, "csv", str(tmp_path / "jobs.csv"), "--mapping", str(tmp_path / "map.yaml"))
    assert sorted(pods(tmp_path)) == ["a", "a-3", "b"]


@pytest.mark.parametrize("line", ["1 2 3", "a " * 18, "1e999 " * 18, "9" * 400])
def test_a_line_that_is_no_job_is_told(line: str) -> None:
    with pytest.raises(TraceError, match="line 1: a job is 18 numbers"):
        list(swf.pods_of([line], swf.Machine(1, 8, 0.0)))


def test_a_machine_that_nobody_describes_is_asked_for() -> None:
    with pytest.raises(TraceError, match="give --nodes and --cpus"):
        swf.machine(["; Computer: unknown"])
    assert swf.machine([], 4, 8) == swf.Machine(4, 8, 0.0)


@given(st.text(max_size=200))
def test_any_text_is_a_mapping_or_refused(text: str) -> None:
    try:
        read_mapping(text, "m")
    except TraceError as error:
        assert str(error).startswith("`m`: ")
