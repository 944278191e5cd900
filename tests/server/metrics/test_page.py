"""docs/metrics.md is what the registry says."""

from pathlib import Path

from policyengine.server.metrics.page import page

DOCS = Path(__file__).resolve().parent.parent.parent.parent / "docs"


def test_the_page_is_made_from_the_registry_as_it_is() -> None:
    shown = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert shown == page(), "run `python -m policyengine.server.metrics.page > docs/metrics.md`"
