"""docs/metrics.md is what the registry says."""

from pathlib import Path

from tests.docs.metrics_page import page

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_made_from_the_registry_as_it_is() -> None:
    shown = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert shown == page(), "run `python -m tests.docs.metrics_page > docs/metrics.md`"
