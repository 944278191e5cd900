"""How findings are written: `written(found, form)` gives the whole output, "" for nothing to write.

`text` is for people, `json` for programs, `github` for the annotations of GitHub Actions
(https://docs.github.com/actions/reference/workflow-commands-for-github-actions), `junit` for CI servers, `sarif` for
code scanning. JUnit's XML is a suite a file and a failed case a finding, and only what Jenkins' schema of it allows
(junit-10.xsd): the strictest reader there is. A SARIF fingerprint is made of a finding's code and of the text it is
about, not of its line: it stays the same where lines are put in above it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as Xml

from policyengine.commands.linting.files import Linted
from policyengine.commands.options import is_coloured
from policyengine.control_characters import xml_text
from policyengine.language.diagnostics import CODES, Diagnostic, Fix, Severity, Source, printable, render, to_json
from policyengine.language.lint.rules import RULES
from policyengine.language.syntax import Span
from policyengine.version import __version__


def _text(found: Sequence[Linted]) -> str:
    """The findings file by file; in colour on a terminal."""
    colour = is_coloured(sys.stdout)
    shown = [render(one.findings, one.text.shown, color=colour) for one in found if one.findings]
    return "\n".join(shown)


def _json(found: Sequence[Linted]) -> str:
    """A list of `{code, severity, file, line, column, endLine, endColumn, message, fix?}`; empty for no findings."""
    entries = [to_json(finding, one.text.shown) for one in found for finding in one.findings]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def _github(found: Sequence[Linted]) -> str:
    """A command a finding."""
    return "".join(f"{_command(finding, one.text.shown)}\n" for one in found for finding in one.findings)


def _command(finding: Diagnostic, source: Source) -> str:
    line, column = source.line_column(finding.span.start)
    end_line, end_column = source.line_column(finding.span.end)
    place: dict[str, object] = {"file": finding.file, "line": line, "endLine": end_line}
    if line == end_line:  # columns are only understood within one line
        place |= {"col": column, "endColumn": end_column}
    place["title"] = finding.code
    texts = {name: _data(str(value)).replace(":", "%3A").replace(",", "%2C") for name, value in place.items()}
    properties = ",".join(f"{name}={text}" for name, text in texts.items())
    fix = f" ({finding.fix.title})" if finding.fix else ""
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(printable(finding.message + fix))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _junit(found: Sequence[Linted]) -> str:
    """One document."""
    failures = sum(len(one.findings) for one in found)
    tests = sum(max(1, len(one.findings)) for one in found)
    root = Xml.Element("testsuites", name="policyengine lint", tests=str(tests), failures=str(failures), errors="0")
    for one in found:
        _suite(root, one)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(root: Xml.Element, linted: Linted) -> None:
    name, count = xml_text(linted.text.shown.file), len(linted.findings)
    suite = Xml.SubElement(
        root, "testsuite", name=name, tests=str(max(1, count)), failures=str(count), errors="0", skipped="0"
    )
    if not count:
        Xml.SubElement(suite, "testcase", classname=name, name="lint")
    for finding in linted.findings:
        line, column = linted.text.shown.line_column(finding.span.start)
        case = Xml.SubElement(suite, "testcase", classname=name, name=f"{finding.code} {line}:{column}")
        failure = Xml.SubElement(case, "failure", type=finding.severity.value, message=xml_text(finding.message))
        failure.text = xml_text(render([finding], linted.text.shown))


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "policyengine/v1"
_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def _sarif(found: Sequence[Linted]) -> str:
    """One log with one run. Its rules are those that have a finding."""
    codes = sorted({finding.code for one in found for finding in one.findings})
    results = [result for one in found for result in _results(one, codes)]
    driver = {"name": "policyengine", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(code: str) -> dict[str, Any]:
    title, page = CODES[code]
    level = next((_SARIF_LEVELS[rule.severity] for rule in RULES if rule.code == code), _SARIF_LEVELS[Severity.ERROR])
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
        fingerprint = sha256(f"{seen[about]}\0{about}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": _SARIF_LEVELS[finding.severity],
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": _location(finding.span, source)}],
            "partialFingerprints": {FINGERPRINT: fingerprint},
        }
        if finding.related:
            result["relatedLocations"] = [
                {"physicalLocation": _location(one.span, source), "message": {"text": one.label}}
                for one in finding.related
            ]
        if finding.fix is not None and finding.fix.edits:
            result["fixes"] = [_sarif_fix(finding.fix, source)]
        results.append(result)
    return results


def _about(finding: Diagnostic, source: Source) -> str:
    """The code and the words of the finding's lines: the same however they are indented."""
    first, _ = source.line_column(finding.span.start)
    last, _ = source.line_column(finding.span.end)
    words = [word for line in range(first, min(last, first + 50) + 1) for word in source.line(line).split()]
    return "\0".join((finding.code, *words))


def _location(span: Span, source: Source) -> dict[str, Any]:
    return {"artifactLocation": {"uri": _uri(source.file)}, "region": _region(span, source)}


def _region(span: Span, source: Source) -> dict[str, Any]:
    line, column = source.line_column(span.start)
    end_line, end_column = source.line_column(span.end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _sarif_fix(fix: Fix, source: Source) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.span, source), "insertedContent": {"text": edit.text}} for edit in fix.edits
    ]
    change = {"artifactLocation": {"uri": _uri(source.file)}, "replacements": replacements}
    return {"description": {"text": fix.title}, "artifactChanges": [change]}


_FORMS = {"text": _text, "json": _json, "github": _github, "sarif": _sarif, "junit": _junit}


def written(found: Sequence[Linted], form: str) -> str:
    """The findings in a form: `text`, `json`, `github`, `sarif` or `junit`."""
    return _FORMS[form](found)
