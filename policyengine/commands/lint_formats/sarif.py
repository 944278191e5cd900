"""For code scanning: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/).

A finding's fingerprint is made of its code and of the text it is about, not of its line: it stays the same finding
where lines are put in above it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from policyengine.commands.lint_files import Linted
from policyengine.language.diagnostics import CODES, Diagnostic, Fix, Severity, Source
from policyengine.language.lint.rules import RULES
from policyengine.language.syntax import Span
from policyengine.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "policyengine/v1"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def written(found: Sequence[Linted]) -> str:
    """One log with one run. Its rules are those that have a finding."""
    codes = sorted({finding.code for one in found for finding in one.findings})
    results = [result for one in found for result in _results(one, codes)]
    driver = {"name": "policyengine", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(code: str) -> dict[str, Any]:
    title, page = CODES[code]
    level = next((_LEVELS[rule.severity] for rule in RULES if rule.code == code), _LEVELS[Severity.ERROR])
    return {
        "id": code,
        "shortDescription": {"text": title},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": level},
    }


def _results(linted: Linted, codes: Sequence[str]) -> list[dict[str, Any]]:
    source, seen = linted.text.shown, Counter[str]()
    results = []
    for finding in linted.findings:
        about = _about(finding, source)
        seen[about] += 1
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": _LEVELS[finding.severity],
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": _location(finding.span, source)}],
            "partialFingerprints": {FINGERPRINT: _fingerprint(about, seen[about])},
        }
        if finding.related:
            result["relatedLocations"] = [
                {"physicalLocation": _location(one.span, source), "message": {"text": one.label}}
                for one in finding.related
            ]
        if finding.fix is not None and finding.fix.edits:
            result["fixes"] = [_fix(finding.fix, source)]
        results.append(result)
    return results


def _about(finding: Diagnostic, source: Source) -> str:
    """The code and the words of the finding's lines: the same however they are indented."""
    first, _ = source.line_column(finding.span.start)
    last, _ = source.line_column(finding.span.end)
    words = [word for line in range(first, min(last, first + 50) + 1) for word in source.line(line).split()]
    return "\0".join((finding.code, *words))


def _fingerprint(about: str, number: int) -> str:
    return sha256(f"{number}\0{about}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _location(span: Span, source: Source) -> dict[str, Any]:
    return {"artifactLocation": {"uri": _uri(source.file)}, "region": _region(span, source)}


def _region(span: Span, source: Source) -> dict[str, Any]:
    line, column = source.line_column(span.start)
    end_line, end_column = source.line_column(span.end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _fix(fix: Fix, source: Source) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.span, source), "insertedContent": {"text": edit.text}} for edit in fix.edits
    ]
    change = {"artifactLocation": {"uri": _uri(source.file)}, "replacements": replacements}
    return {"description": {"text": fix.title}, "artifactChanges": [change]}
