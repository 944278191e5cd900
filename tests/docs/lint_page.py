"""The part of docs/lint.md that repeats the rules. `python -m tests.docs.lint_page` writes it anew."""

from __future__ import annotations

from pathlib import Path

from policyengine.commands.linting.explanations import pages, severity_of
from policyengine.language.lint.cost import MACHINE, MICROSECONDS, NODES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lint.md"
BEGIN = "<!-- made from the rules by `python -m tests.docs.lint_page` -->\n"
END = "<!-- end of what is made -->\n"
KINDS = {
    "PE0": "Syntax",
    "PE1": "Names and types",
    "PE2": "Members",
    "PE30": "What can never or always be",
    "PE31": "Scores",
    "PE32": "The order of the queue",
    "PE33": "Gangs and permits",
    "PE34": "Quotas, preemption and errors",
    "PE35": "Names, texts and literals",
    "PE36": "What runs beside the rules",
    "PE37": "Cost",
    "PE38": "Tests",
    "PE39": "Comments that allow findings",
}


def generated() -> str:
    """The table of costs, then every code's page, kind by kind."""
    lines = [f"| operation over {NODES:,} nodes | µs |", "|---|---:|"]
    lines += [f"| {name} | {spent:g} |" for name, spent in MICROSECONDS.items()]
    lines += ["", MACHINE + ".", ""]
    found = pages()
    for prefix, title in KINDS.items():
        codes = [code for code in found if code.startswith(prefix)]
        lines += [f"## {title}", "", "| code | | |", "|---|---|---|"]
        lines += [f"| [{code}](#{code.lower()}) | {severity_of(code).value} | {found[code][0]} |" for code in codes]
        lines.append("")
        for code in codes:
            lines += [f"### {code}", "", f"**{found[code][0]}**", "", found[code][1], ""]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Put the pages into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(before + BEGIN + generated() + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
