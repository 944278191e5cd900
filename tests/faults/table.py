"""The table of docs/reliability.md, made of the tests themselves: `python -m tests.faults.table` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from tests.faults import test_bindings, test_clusters, test_policies, test_processes, test_watches
from tests.faults.defence import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
MODULES: tuple[ModuleType, ...] = (test_watches, test_bindings, test_clusters, test_processes, test_policies)
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
HEAD = (
    "| # | fault | what must happen | the defence | taken out | broken then | test |\n|---|---|---|---|---|---|---|\n"
)
API_PAGE = PAGE.with_name("api-server.md")

MUST = {
    1: "list again, find by comparison what was missed",
    2: "time out, resume from the last version, wait longer each time",
    3: "the accounts are what they were",
    4: "state never goes back",
    5: "a list finds it, the room is free",
    6: "correct either way",
    7: "connect again, apply nothing in part",
    8: "keep the reservation, read the pod, then decide",
    9: "forget, adopt the node observed",
    10: "swap at once; no binding for a namesake",
    11: "drop it, free the room",
    12: "back off, tell the user",
    13: "wait so long, and not all equally long",
    14: "recover, no stampede",
    15: "asked again, given back",
    16: "nothing more is placed there",
    17: "its pods are neither lost nor counted twice",
    18: "observed, computed again",
    19: "rebuilt from the API alone",
    20: "no binding after the local renew deadline",
    21: "monotonic time, observed renewals only",
    22: "the lease is checked right before the POST",
    23: "what is not bound is rolled back; the gang waits no longer than its timeout",
    24: "the deadlock breaks",
    25: "the nomination ends, others get the room",
    26: "a decision keeps its hash, caches belong to it",
    27: "the last good policy serves, the status says why",
    28: "bounded, fails as configured",
    29: "tried again; a periodic flush besides",
    30: "equal to a full recomputation",
}


def rows() -> list[Row]:
    """Those of all tests, by number."""
    found = [test.row for module in MODULES for test in vars(module).values() if hasattr(test, "row")]
    return sorted(found, key=lambda row: row.number)


def faults() -> dict[int, str]:
    """Number -> name, as the page of the API server has them."""
    lines = re.findall(r"^\| (\d+) \| ([^|]+) \| ", API_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {int(number): name for number, name in lines}


def table() -> str:
    """The table as Markdown."""
    names = faults()
    lines = [
        f"| {row.number} | {names[row.number]} | {MUST[row.number]} | {row.defence} | {row.taken_out} | {row.breaks} "
        f"| `{row.test}` |\n"
        for row in rows()
    ]
    return f"{BEGIN}\n\n{HEAD}{''.join(lines)}\n{END}"


def page_with_table(page: str) -> str:
    """The page, its table made anew."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: table(), page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
