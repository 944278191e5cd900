"""When the commands print in colour."""

from __future__ import annotations

import io

import pytest

from policyengine.commands.options import is_coloured


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
