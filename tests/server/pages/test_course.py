"""The pictures of a recording say what its pods did."""

import json
import re
from pathlib import Path

import pytest

from policyengine.plugins.registry import IN_TREE, default_profile
from policyengine.server.pages.recorded import STRETCHES, RecordedSource, ReplannedSource, charts
from tests.recording.recordings import Recorded
from tests.server.pages.scenes import pages


def test_pods_wait_from_when_they_come_until_they_are_bound_or_gone() -> None:
    start, end = 1000.0, 1000.0 + STRETCHES
    pods = [(1000.0, 1010.5, None), (1005.0, 1010.2, 1020.0), (1030.0, None, 1040.0), (1100.0, None, None)]
    first, second = charts(pods, start, end)
    waiting, bound = (line["values"] for line in first["lines"])
    assert [waiting[at] for at in (0, 4, 5, 10, 11, 29, 30, 39, 40, 100, STRETCHES)] == [
        1,
        1,
        2,
        2,
        0,
        0,
        1,
        1,
        0,
        1,
        1,
    ]
    assert (sum(bound), bound[11]) == (2, 2)
    assert second["lines"][0]["values"][11] == 10.5 and max(second["lines"][0]["values"]) == 10.5
    assert len(first["at"]) == len(waiting) == len(bound) == STRETCHES + 1


@pytest.mark.parametrize("pods", [[], [(1.0, None, None)], [(1.0, 1.0, 1.0)]])
def test_a_recording_of_a_moment_or_of_nobody_has_pictures_too(pods: list[tuple[float, float | None, None]]) -> None:
    assert all(len(line["values"]) == len(one["at"]) for one in charts(pods, 1.0, 1.0) for line in one["lines"])


async def test_every_side_of_a_recording_draws_its_own_and_marks_the_moment(tmp_path: Path) -> None:
    one = Recorded(tmp_path)
    one.play(0, 30, one.write)
    one.close()
    source = RecordedSource(tmp_path, IN_TREE)
    async with pages(source, other=ReplannedSource(tmp_path, IN_TREE, [default_profile()])) as site:
        for side in ("", "other"):
            text = await site.get("", at=str(source.span[1]), side=side)
            found = re.search(r'id="chart_data">(.*?)</script>', text)
            assert found is not None
            drawn = json.loads(found[1])
            assert [one["mark"] for one in drawn] == [source.span[1]] * 2
            assert max(drawn[0]["lines"][0]["values"]) > 0
