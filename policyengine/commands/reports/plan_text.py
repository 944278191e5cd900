"""A plan on a terminal, and as Markdown for a review."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from policyengine.commands.reports.tables import print_tables
from policyengine.control_characters import escaped
from policyengine.plan.tables import head, tables

if TYPE_CHECKING:
    from policyengine.plan.comparison import Plan


def show(plan: Plan) -> None:
    """Print it."""
    print_tables(head(plan), tables(plan))


def written(plan: Plan) -> str:
    """The same as Markdown."""
    lines = ["### policyengine plan", "", *(f"{_markdown(line)}  " for line in head(plan))]
    for title, headers, rows in tables(plan):
        lines += ["", f"**{title}**", "", f"| {' | '.join(headers)} |", f"|{' --- |' * len(headers)}"]
        lines += [f"| {' | '.join(map(_markdown, row))} |" for row in rows]
    return "\n".join(lines)


def _markdown(text: str) -> str:
    """A name makes no column, link, picture, element or comment of its own."""
    return escape(escaped(text), quote=False).replace("|", "&#124;").replace("[", "&#91;")
