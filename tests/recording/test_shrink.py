"""A recording, cut down to what still shows something."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyengine.cluster.view import ClusterView
from policyengine.recording import segment, shrink
from policyengine.recording.replay import Replay
from policyengine.recording.shrink import NothingToShow, Shrinking, Told
from policyengine.scheduler.messages import NodeDeleted
from tests.recording.recordings import Recorded
from tests.recording.test_replay import recorded, with_another_policy


def shrunk(path: Path, condition: str = "", most: int = 200_000) -> tuple[Told, Replay]:
    """The recording, and how the small one plays."""
    told = Told.of(path)
    shows = told.condition(condition) if condition else told.difference()
    small = path / "small"
    told.write(Shrinking(told, shows, most=most).fewest(), small, differs=not condition)
    replay = Replay(small)
    replay.play()
    assert replay.notes == []
    return told, replay


def test_a_difference_is_shown_by_the_pod_and_the_nodes_it_is_between(tmp_path: Path) -> None:
    recorded(tmp_path)
    with_another_policy(tmp_path, "= clamp(", "= 100.0 - clamp(")
    whole = Replay(tmp_path)
    whole.play()
    told, small = shrunk(tmp_path)
    assert whole.difference is not None and small.difference is not None
    assert small.difference.recorded == whole.difference.recorded
    assert whole.difference.step is not None and small.difference.step is not None
    assert small.difference.step.actions == whole.difference.step.actions
    assert small.messages < 8 < len(told.lines) or len(told.lines) <= 8


def test_the_fewest_messages_are_those_the_condition_needs(tmp_path: Path) -> None:
    one = recorded(tmp_path)
    bound = next(pod for pod in one.trial.state.view.pods.values() if pod.node_name)
    told, small = shrunk(tmp_path, f'pods["{bound.key}"].node == "{bound.node_name}"')
    assert small.difference is None and len(told.lines) > 100
    assert [(pod.key, pod.node_name) for pod in small.state.view.pods.values()] == [(bound.key, bound.node_name)]
    assert (small.messages, small.state.view.nodes.n) == (1, 0)  # the watch that showed it bound


def test_it_is_cut_down_to_the_same_bytes_each_time(tmp_path: Path) -> None:
    recorded(tmp_path)
    found = []
    for _ in range(2):
        shrunk(tmp_path, "waiting > 3")
        found.append((tmp_path / "small").read_bytes())
        (tmp_path / "small").unlink()
    assert found[0] == found[1]


def test_what_is_left_when_no_more_may_be_played_still_shows_it(tmp_path: Path) -> None:
    recorded(tmp_path)
    _, fewest = shrunk(tmp_path, "waiting > 3")
    (tmp_path / "small").unlink()
    _, less = shrunk(tmp_path, "waiting > 3", most=900)
    assert fewest.messages < less.messages
    assert sum(not pod.node_name for pod in less.state.view.pods.values()) > 3


def test_much_that_is_left_is_written_in_frames_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path)
    told = Told.of(tmp_path)
    monkeypatch.setattr(segment, "LARGEST", 32 << 10)
    monkeypatch.setattr(shrink, "MOST_OF_A_FRAME", 10)
    told.write(told.lines, tmp_path / "all", differs=False)
    replay = Replay(tmp_path / "all")
    replay.play()
    messages = [line for line in told.lines if not isinstance(line.message, str) and not line.was_known]
    assert (replay.notes, replay.messages) == ([], len(messages))


def test_a_recording_without_its_beginning_is_cut_down_with_what_was_known(tmp_path: Path) -> None:
    one = Recorded(tmp_path)
    one.play(0, 20)
    one.new_file()
    one.play(20, 40)
    one.close()
    (tmp_path / "000001.recording").unlink()
    _, small = shrunk(tmp_path, "bound >= 1")
    assert [bool(pod.node_name) for pod in small.state.view.pods.values()] == [True]


def test_what_a_core_fails_at_is_recorded_and_cut_down_to_what_makes_it_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Recorded(tmp_path)
    one.play(0, 20)
    with monkeypatch.context() as broken:
        broken.setattr(ClusterView, "remove_node", failing_at_two_pods)
        with pytest.raises(ZeroDivisionError):
            one.trial.see(NodeDeleted("n0"))
        one.close()
        told = Told.of(tmp_path)
        small = tmp_path / "small"
        told.write(Shrinking(told, told.difference()).fewest(), small, differs=False)
        replay = Replay(small)
        replay.play()
        assert replay.notes == ["small: message 4, NodeDeleted, cannot be played: ZeroDivisionError: division by zero"]
        with pytest.raises(NothingToShow, match="it ends with ZeroDivisionError at test_shrink"):
            told.condition("waiting > 3")
    mended = Replay(small)
    mended.play()
    assert mended.notes == [] and mended.messages == 4


def failing_at_two_pods(view: ClusterView, name: str) -> None:
    assert view.nodes.n > 0
    1 / max(0, 2 - len(view.pods))


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("", "nothing differs in it: give a --condition"),
        ("waiting > 1000", "is False at its end"),
        ("waiting", "and not true"),
        ("nobody == 1", "there are pods, waiting, bound and nodes"),
        ("waiting >", "there are pods, waiting, bound and nodes"),
    ],
)
def test_what_is_not_there_is_not_looked_for(tmp_path: Path, condition: str, why: str) -> None:
    recorded(tmp_path)
    with pytest.raises(NothingToShow, match=why):
        shrunk(tmp_path, condition)
