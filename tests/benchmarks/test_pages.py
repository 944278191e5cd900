"""The benchmark of the pages, on a small cluster; no time is asserted."""

import pytest

from benchmarks import pages


async def test_every_page_and_its_viewers_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "WATCHED", 0.3)
    monkeypatch.setattr(pages, "REFUSED", 3)
    rows = await pages.pages(4, 12)
    assert [row.what for row in rows][: len(pages.PAGES)] == list(pages.PAGES)
    assert all(row.unit == "ms" and row.value > 0 for row in rows[: len(pages.PAGES)])
    assert rows[-1].what.startswith("10 viewers")
