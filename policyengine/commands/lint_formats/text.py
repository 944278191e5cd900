"""For people: each finding with its line and a caret below."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from policyengine.commands.lint_files import Linted
from policyengine.commands.options import is_coloured
from policyengine.language.diagnostics import render


def written(found: Sequence[Linted]) -> str:
    """The findings file by file; in colour on a terminal."""
    colour = is_coloured(sys.stdout)
    shown = [render(one.findings, one.text.shown, color=colour) for one in found if one.findings]
    return "\n".join(shown)
