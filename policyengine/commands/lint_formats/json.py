"""For programs: a list of findings."""

from __future__ import annotations

import json
from collections.abc import Sequence

from policyengine.commands.lint_files import Linted
from policyengine.language.diagnostics import to_json


def written(found: Sequence[Linted]) -> str:
    """A list of `{code, severity, file, line, column, endLine, endColumn, message, fix?}`; empty for no findings."""
    entries = [to_json(finding, one.text.shown) for one in found for finding in one.findings]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"
