"""A recording, played again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import msgspec
import pytest
from numpy._core._multiarray_umath import __cpu_features__

from policyengine.policy_compiler import compile_policy
from policyengine.recording.directory import files
from policyengine.recording.encoding import Entry
from policyengine.recording.recorder import DirectRecording
from policyengine.recording.replay import Replay
from policyengine.recording.segment import MAGIC, SegmentReader, SegmentWriter, UnusableRecording
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.state import SchedulerState
from tests.fuzz.histories import policy_of, tried
from tests.recording.kills import killed
from tests.recording.recordings import NOW, POLICY, Recorded


def played(path: Path, until: float | None = None) -> Replay:
    replay = Replay(path)
    for _ in replay.steps(until):
        pass
    return replay


def recorded(path: Path, pods: int = 40) -> Recorded:
    one = Recorded(path)
    one.play(0, pods, one.write)
    one.close()
    return one


def test_every_action_is_the_same(tmp_path: Path) -> None:
    one = recorded(tmp_path)
    replay = played(tmp_path)
    assert (replay.difference, replay.notes, replay.exact) == (None, [], True)
    assert replay.digest == one.recorder._encoder.hexdigest()
    placed = {uid: pod.node_name for uid, pod in one.trial.state.view.pods.items()}
    assert {uid: pod.node_name for uid, pod in replay.state.view.pods.items()} == placed
    assert any(placed.values()) and not all(placed.values())


def test_another_process_with_other_hash_seeds_and_fewer_cpu_features_decides_the_same(tmp_path: Path) -> None:
    recorded(tmp_path)
    ours = played(tmp_path).digest
    found = [feature for feature in ("X86_V3", "X86_V4", "AVX512_ICL") if __cpu_features__.get(feature)]
    fewer = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": " ".join(found)}
    for more in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", **fewer}):
        program = [sys.executable, "-c", "from tests.recording.test_replay import main; main()", str(tmp_path)]
        done = subprocess.run(program, capture_output=True, text=True, env=os.environ | more, check=False)
        assert done.stdout == f"{ours} None\n", done.stderr


def main() -> None:
    """Play the recording that the command line names."""
    replay = played(Path(sys.argv[1]))
    print(replay.digest, replay.difference)


def test_a_run_goes_on_from_file_to_file(tmp_path: Path) -> None:
    one = Recorded(tmp_path)
    one.play(0, 20)
    one.new_file()
    one.play(20, 40)
    one.new_file()
    one.play(40, 50)
    one.close()
    replay = played(tmp_path)
    assert len(files(tmp_path)) == 3
    assert (replay.difference, replay.notes, replay.exact) == (None, [], True)
    assert replay.digest == one.recorder._encoder.hexdigest()


def test_where_the_first_file_is_gone_the_cluster_is_what_it_was_and_nothing_is_compared(tmp_path: Path) -> None:
    one = Recorded(tmp_path)
    one.play(0, 20)
    one.new_file()
    one.play(20, 40)
    one.close()
    files(tmp_path)[0].unlink()
    replay = played(tmp_path)
    assert replay.difference is None and not replay.exact
    there = {uid for uid, pod in one.trial.state.view.pods.items()}
    assert set(replay.state.view.pods) == there
    assert replay.state.view.nodes.n == one.trial.state.view.nodes.n


def test_of_several_runs_each_has_a_core_of_its_own(tmp_path: Path) -> None:
    for run in ("first", "second"):
        one = Recorded(tmp_path, run)
        one.play(0, 12)
        one.close()
    replay = played(tmp_path)
    assert (replay.difference, replay.notes, replay.exact) == (None, [], True)
    assert replay.digest == one.recorder._encoder.hexdigest()


def test_between_two_runs_the_cluster_is_what_the_first_one_saw_last(tmp_path: Path) -> None:
    seen = set(recorded(tmp_path).trial.state.view.pods)
    for run in ("crashed", "crashed again"):
        recording = DirectRecording(tmp_path, "0", run)
        recording.recorded(SchedulerState([compile_policy(POLICY)]))
        recording.close()
    assert (set(played(tmp_path).state.view.pods), played(tmp_path).notes) == (seen, [])
    later = Recorded(tmp_path, "later", start=NOW + 1000.0)
    later.play(0, 12)
    later.close()
    between = played(tmp_path, NOW + 500.0)
    assert (set(between.state.view.pods), between.now) == (seen, NOW + 500.0)
    assert set(played(tmp_path).state.view.pods) == set(later.trial.state.view.pods)


def test_a_process_that_was_killed_at_any_moment_has_left_every_whole_frame(tmp_path: Path) -> None:
    recorded(tmp_path)
    (path,) = files(tmp_path)
    whole, random = path.read_bytes(), Random(7)
    first = len(MAGIC) + 12 + int.from_bytes(whole[len(MAGIC) : len(MAGIC) + 4])
    most = played(tmp_path).messages
    seen = []
    for length in sorted(random.sample(range(first, len(whole)), 50)):
        path.write_bytes(whole[:length])
        replay = played(tmp_path)
        assert replay.difference is None
        assert replay.cut_only
        seen.append(replay.messages)
    assert seen == sorted(seen)
    assert 0 <= seen[0] < seen[-1] <= most


def test_a_damaged_frame_is_told_and_what_stands_before_it_is_played(tmp_path: Path) -> None:
    recorded(tmp_path)
    (path,) = files(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    replay = played(tmp_path)
    assert replay.messages > 10
    assert len(replay.notes) == 1 and "is damaged" in replay.notes[0]
    assert not replay.cut_only


@pytest.mark.parametrize("seed", range(3))
def test_a_scheduler_that_is_killed_loses_no_whole_frame(tmp_path: Path, seed: int) -> None:
    assert killed(tmp_path, seed) == ""


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableRecording, match="the directory holds no recording"):
        Replay(tmp_path)
    (tmp_path / "000001.recording").write_bytes(b"kind: List")
    with pytest.raises(UnusableRecording, match=r"000001.recording: no recording of policyengine"):
        played(tmp_path)


def test_a_pipe_among_its_files_is_not_waited_for(tmp_path: Path) -> None:
    recorded(tmp_path, 4)
    os.mkfifo(tmp_path / "000002.recording")
    with pytest.raises(UnusableRecording, match=r"000002.recording is no regular file"):
        Replay(tmp_path)


def test_the_first_difference_has_both_decisions(tmp_path: Path) -> None:
    recorded(tmp_path)
    with_another_policy(tmp_path, "= clamp(", "= 100.0 - clamp(")
    replay = played(tmp_path)
    difference = replay.difference
    assert difference is not None and difference.step is not None
    (mine,) = (one for one in difference.step.actions if isinstance(one, Bind))
    (theirs,) = (fields for name, fields in difference.recorded if name == "Bind")
    assert (mine.uid, mine.node) == (theirs["uid"], theirs["node"])
    assert mine.policy_hash != theirs["policy_hash"]  # that another policy decided is a difference too


def with_another_policy(path: Path, old: str, new: str) -> None:
    """Write the recording anew, as if another text had decided so."""
    (file,) = files(path)
    writer, content = SegmentWriter(), MAGIC
    with file.open("rb") as before:
        for entries in SegmentReader(before, "f").frames():
            content += writer.frame([_changed(entry, old, new) for entry in entries])
    file.write_bytes(content)


def _changed(entry: Entry, old: str, new: str) -> bytes:
    body = msgspec.msgpack.decode(entry.body)
    if entry.name == "Policy":
        body["files"] = {file: text.replace(old, new) for file, text in body["files"].items()}
    more = [msgspec.Raw(entry.actions)] if entry.actions else []
    return msgspec.msgpack.encode([entry.now, entry.name, body, *more])


def test_the_cluster_at_a_moment(tmp_path: Path) -> None:
    one = recorded(tmp_path)
    early = played(tmp_path, NOW + 10.0)
    assert early.now <= NOW + 10.0
    assert 0 < len(early.state.view.pods) < len(one.trial.state.view.pods)
    assert early.difference is None


@pytest.mark.parametrize("seed", range(30))
def test_generated_histories_are_played_again_as_they_were(tmp_path: Path, seed: int) -> None:
    if policy_of(seed) is None:
        pytest.skip("the generator wrote no policy from this seed")
    recording = DirectRecording(tmp_path, "0", str(seed))
    tried(seed, recording.recorded)
    recording.close()
    replay = played(tmp_path)
    assert (replay.difference, replay.notes, replay.exact) == (None, [], True)
