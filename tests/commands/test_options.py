"""When the commands print in colour, and options that mean nothing where they are given."""

from __future__ import annotations

import io

import pytest

from policyengine.commands.options import is_coloured
from tests.commands.process import policyengine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "no_color", "coloured"),
    [
        (Terminal(), None, True),
        (Terminal(), "1", False),
        (Terminal(), "", True),
        (io.StringIO(), None, False),
    ],
)
def test_a_terminal_gets_colours_unless_no_color_says_none(
    stream: io.StringIO, no_color: str | None, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert is_coloured(stream) is coloured


@pytest.mark.parametrize(
    "line", ["rewards --rate nan", "rewards --start NaN", "annotate --tolerance nan", "test --coverage-min nan ."]
)
def test_what_is_no_number_is_told(line: str) -> None:
    ended = policyengine(*line.split())
    assert ended.code == 2
    assert ended.err.splitlines()[-1].lower().endswith("`nan` is no number")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("plan new.policy --scenario s --now 2026-01-05T00:00:00Z", "--now is for a dump or a cluster that is there"),
        ("plan new.policy --recording r --context c", "--context is for a cluster that is there"),
        ("simulate s --jobs 2", "--jobs is for --seeds"),
        ("replay r --shrink s -o json", "--output is for what is printed, and --shrink writes a file"),
        ("import openb nodes pods -o r --cpus 2", "--cpus is for swf"),
        ("tune policies/tenants.policy --recording r --objective waiting --seeds 2", "--seeds is for a scenario"),
    ],
)
def test_an_option_that_means_nothing_there_is_refused(line: str, told: str) -> None:
    ended = policyengine(*line.split())
    assert (ended.code, ended.err.splitlines()[-1]) == (2, f"Error: {told}")
