"""Pages that show what is typed and what is seen then: `$ COMMAND` and below it what it prints, in console blocks.

`…` stands for what differs from one time to the next.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Typed(NamedTuple):
    """One command, and what the page shows of its output."""

    command: str
    shown: str


def typed_in(text: str) -> list[Typed]:
    """All of a page, or of a part of it, in its order."""
    blocks = [block.replace("\\\n", "") for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)]
    parts = [part.partition("\n") for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [Typed(command, shown.strip()) for command, _, shown in parts]


def pattern(shown: str) -> str:
    """What matches the whole of what is seen, its runs of white space taken for one space each."""
    return re.sub(r"(\\ )?…", ".*?", re.escape(" ".join(shown.split())))


def is_seen(shown: str, output: str) -> bool:
    """Whether the output is what the page shows; nothing shown is anything seen."""
    return not shown or re.fullmatch(pattern(shown), " ".join(output.split())) is not None


def sittings(page: Path) -> list[list[Typed]]:
    """The page's commands from one sandbox to the next; what comes before the first is a sitting too."""
    found: list[list[Typed]] = [[]]
    for one in typed_in(page.read_text(encoding="utf-8")):
        if one.command.startswith(("policyengine sandbox", "pip install")) and not only_installed(found[-1]):
            found.append([])
        found[-1].append(one)
    return [sitting for sitting in found if sitting]


def only_installed(sitting: list[Typed]) -> bool:
    """Whether nothing has been done in it but to install what it needs."""
    return all(one.command.startswith("pip install") for one in sitting)
