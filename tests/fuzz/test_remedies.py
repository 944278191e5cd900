"""Every remedy that is suggested in a generated cluster, applied to it, has its pod placed."""

from __future__ import annotations

import pytest

from policyengine.diagnosis import suggest
from tests.fuzz.remedies import main


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_every_remedy_has_its_pod_placed(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["10", str(first)]) == 0, capsys.readouterr().out


def test_a_remedy_that_does_not_help_is_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suggest, "_is_prepared", lambda state, uid: True)
    monkeypatch.setattr(suggest._Plays, "start", _start_whatever(suggest._Plays.start))
    assert main(["10", "0"]) == 1
    assert "it waits still" in capsys.readouterr().out


def _start_whatever(start: object) -> object:
    """Begin although every pod counts as placed."""

    def begin(plays: suggest._Plays) -> object:
        prepared, suggest._is_prepared = suggest._is_prepared, lambda state, uid: False
        try:
            return start(plays)  # type: ignore[operator]
        finally:
            suggest._is_prepared = prepared

    return begin
