"""A recording as pages: any moment is what `replay --at` has, its pictures say what its pods did, and what cannot be
shown is said in words."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest

from policyengine.plugins.registry import IN_TREE, default_profile
from policyengine.recording.directory import files
from policyengine.recording.replay import Replay
from policyengine.recording.segment import UnusableRecording
from policyengine.server.pages.recorded import STRETCHES, RecordedSource, ReplannedSource, charts
from tests.recording.recordings import Recorded
from tests.server.pages.scenes import pages


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording")
    one = Recorded(path)
    one.play(0, 30, one.write)
    one.close()
    return path


async def test_any_moment_is_what_replay_says_of_it_in_whatever_order_they_are_asked_for(recording: Path) -> None:
    source = RecordedSource(recording, IN_TREE)
    first, last = source.span
    assert first < last
    for share in (0.5, 0.9, 0.1, 0.1, 0.0, 1.0, 0.4):
        at = first + share * (last - first)
        replay = Replay(recording)
        replay.play(at)
        async with source.moment(at) as moment:
            assert _placed(moment.state) == _placed(replay.state)
            assert moment.now == at


def _placed(state: object) -> dict[str, str]:
    return {uid: pod.node_name for uid, pod in state.view.pods.items()}  # type: ignore[attr-defined]


async def test_moments_outside_are_the_first_and_the_last(recording: Path) -> None:
    source = RecordedSource(recording, IN_TREE)
    for at, wanted in ((0.0, source.span[0]), (9e9, source.span[1]), (None, source.span[1])):
        async with source.moment(at) as moment:
            assert moment.now == wanted


async def test_every_link_keeps_the_moment_and_the_side(recording: Path) -> None:
    source = RecordedSource(recording, IN_TREE)
    other = ReplannedSource(recording, IN_TREE, [default_profile()])
    at = str(source.span[0] + 1)
    async with pages(source, other=other) as site:
        for path in ("", "pods", "nodes", "policies", "compare"):
            text = await site.get(path, at=at, side="other")
            links = [link for link in re.findall(r'href="([^"#]+)"', text) if "static/" not in link]
            assert links and all("at=" in link or link.startswith("?") for link in links), path
            assert 'type="range"' in text and "data-follow" not in text


async def test_two_policies_stand_side_by_side(recording: Path) -> None:
    source = RecordedSource(recording, IN_TREE)
    async with pages(source, other=ReplannedSource(recording, IN_TREE, [default_profile()])) as site:
        text = await site.get("compare")
        assert text.count("bound in the last minute") == 2
        assert "under policy default" in text and "pods are elsewhere" in text


async def test_a_recording_that_breaks_off_is_shown_up_to_there_and_says_so(recording: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(recording, broken)
    last = files(broken)[-1]
    whole = last.read_bytes()
    last.write_bytes(whole[:-5])
    async with pages(RecordedSource(broken, IN_TREE)) as site:
        text = await site.get("")
        assert "the recording is not whole" in text and "left out" in text


@pytest.mark.parametrize("content", [b"", b"policyengine recording 2\n", b"policyengine recording 1\n", b"\x00" * 99])
def test_what_is_no_recording_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "000001.recording").write_bytes(content)
    with pytest.raises(UnusableRecording):
        RecordedSource(tmp_path, IN_TREE)


async def test_a_recording_that_is_gone_meanwhile_is_said_in_words(recording: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(recording, copy)
    source = RecordedSource(copy, IN_TREE)
    shutil.rmtree(copy)
    async with pages(source) as site:
        status, text = await site.answer("")
        assert status == 500 and "the recording cannot be played up to there" in text


async def test_many_who_look_at_different_moments_at_once_see_each_their_own(recording: Path) -> None:
    source = RecordedSource(recording, IN_TREE)
    first, last = source.span
    alone = RecordedSource(recording, IN_TREE)

    async def seen(of: RecordedSource, at: float) -> dict[str, str]:
        async with of.moment(at) as moment:
            return _placed(moment.state)

    moments = [first + (last - first) * (number * 7 % 10) / 10 for number in range(10)]
    together = await asyncio.gather(*(seen(source, at) for at in moments))
    assert together == [await seen(alone, at) for at in moments]


def test_pods_wait_from_when_they_come_until_they_are_bound_or_gone() -> None:
    start, end = 1000.0, 1000.0 + STRETCHES
    pods = [(1000.0, 1010.5, None), (1005.0, 1010.2, 1020.0), (1030.0, None, 1040.0), (1100.0, None, None)]
    first, second = charts(pods, start, end)
    waiting, bound = (line["values"] for line in first["lines"])
    changes = {0: 1, 4: 1, 5: 2, 10: 2, 11: 0, 29: 0, 30: 1, 39: 1, 40: 0, 100: 1, STRETCHES: 1}
    assert {at: waiting[at] for at in changes} == changes
    assert (sum(bound), bound[11]) == (2, 2)
    assert second["lines"][0]["values"][11] == 10.5 and max(second["lines"][0]["values"]) == 10.5
    assert len(first["at"]) == len(waiting) == len(bound) == STRETCHES + 1


@pytest.mark.parametrize("pods", [[], [(1.0, None, None)], [(1.0, 1.0, 1.0)]])
def test_a_recording_of_a_moment_or_of_nobody_has_pictures_too(pods: list[tuple[float, float | None, None]]) -> None:
    assert all(len(line["values"]) == len(one["at"]) for one in charts(pods, 1.0, 1.0) for line in one["lines"])


async def test_every_side_of_a_recording_draws_its_own_and_marks_the_moment(recording: Path) -> None:
    source = RecordedSource(recording, IN_TREE)
    async with pages(source, other=ReplannedSource(recording, IN_TREE, [default_profile()])) as site:
        for side in ("", "other"):
            text = await site.get("", at=str(source.span[1]), side=side)
            drawn = json.loads(re.findall(r'id="chart_data">(.*?)</script>', text)[0])
            assert [one["mark"] for one in drawn] == [source.span[1]] * 2
            assert max(drawn[0]["lines"][0]["values"]) > 0
