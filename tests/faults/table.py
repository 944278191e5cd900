"""The table of docs/reliability.md, made of the tests themselves: `python -m tests.faults.table` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from tests.faults import (
    test_bindings,
    test_clusters,
    test_leases,
    test_policies,
    test_processes,
    test_restored,
    test_sharing,
    test_watches,
)
from tests.faults.defence import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
MODULES: tuple[ModuleType, ...] = (
    test_watches,
    test_bindings,
    test_clusters,
    test_processes,
    test_policies,
    test_restored,
    test_sharing,
    test_leases,
)
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
HEAD = (
    "| # | fault | what must happen | the defence | taken out | broken then | test |\n|---|---|---|---|---|---|---|\n"
)

FAULTS = {
    1: ("410 at watch start, or as an ERROR event mid-stream", "list again, find by comparison what was missed"),
    2: (
        "disconnect, half-open connection, silent stall",
        "time out, resume from the last version, wait longer each time",
    ),
    3: ("duplicate events", "the accounts are what they were"),
    4: ("an older resourceVersion after an API server failover", "state never goes back"),
    5: ("a missed DELETE", "a list finds it, the room is free"),
    6: ("bookmarks only, none, coalesced updates", "correct either way"),
    7: ("a truncated or garbage line", "connect again, apply nothing in part"),
    8: ("bind times out, outcome unknown", "keep the reservation, read the pod, then decide"),
    9: ("bind 409: already assigned", "forget, adopt the node observed"),
    10: (
        "bind 409: UID differs; delete + create of one name merged into an update",
        "swap at once; no binding for a namesake",
    ),
    11: ("bind 404", "drop it, free the room"),
    12: ("bind 403 or 422", "back off, tell the user"),
    13: ("429 with Retry-After", "wait so long, and not all equally long"),
    14: ("a burst of 500/503, an API server restart", "recover, no stampede"),
    15: ("node deleted, cordoned or tainted between assume and bind", "asked again, given back"),
    16: ("allocatable shrinks, a pod is resized in place", "nothing more is placed there"),
    17: ("a node deleted and created again under its name", "its pods are neither lost nor counted twice"),
    18: ("a second scheduler, or a hand-made binding, mid-cycle", "observed, computed again"),
    19: ("crash before, during, after a bind", "rebuilt from the API alone"),
    20: ("lease lost mid-bind", "no binding after the local renew deadline"),
    21: ("clock jump or skew", "monotonic time, observed renewals only"),
    22: ("a pause longer than the lease", "the lease is checked right before the POST"),
    23: (
        "the k-th bind of a gang fails, a member is deleted",
        "what is not bound is rolled back; the gang waits no longer than its timeout",
    ),
    24: ("two gangs each hold half", "the deadlock breaks"),
    25: ("a victim never dies or reappears, the preemptor is deleted", "the nomination ends, others get the room"),
    26: ("policy replaced mid-cycle", "a decision keeps its hash, caches belong to it"),
    27: ("an invalid, truncated or flapping policy", "the last good policy serves, the status says why"),
    28: ("extender slow, oversized, naming unknown nodes", "bounded, fails as configured"),
    29: ("the event that would free a pod arrives during its attempt", "tried again; a periodic flush besides"),
    30: ("incremental answer against a full recomputation", "equal to a full recomputation"),
    31: (
        "etcd restored from an older copy: versions go back, deleted pods return, new ones vanish",
        "noticed on every path, listed anew, nothing decided until then, correct within 5 s of the server's return",
    ),
}
"""By number: the fault, and what must happen."""


def rows() -> list[Row]:
    """Those of all tests, by number."""
    found = [test.row for module in MODULES for test in vars(module).values() if hasattr(test, "row")]
    return sorted(found, key=lambda row: row.number)


def table() -> str:
    """The table as Markdown."""
    lines = []
    for row in rows():
        cells = (str(row.number), *FAULTS[row.number], row.defence, row.taken_out, row.breaks, f"`{row.test}`")
        lines.append(f"| {' | '.join(cells)} |\n")
    return f"{BEGIN}\n\n{HEAD}{''.join(lines)}\n{END}"


def page_with_table(page: str) -> str:
    """The page, its table made anew."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: table(), page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
