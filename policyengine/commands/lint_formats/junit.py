"""For CI servers: JUnit's XML, a suite a file, a failed case a finding; a file without findings is one that passes.

Only what Jenkins' schema of it allows (junit-10.xsd): the strictest reader there is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from policyengine.commands.lint_files import Linted
from policyengine.language.diagnostics import render

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def written(found: Sequence[Linted]) -> str:
    """One document."""
    failures = sum(len(one.findings) for one in found)
    tests = sum(max(1, len(one.findings)) for one in found)
    root = Xml.Element("testsuites", name="policyengine lint", tests=str(tests), failures=str(failures), errors="0")
    for one in found:
        _suite(root, one)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(root: Xml.Element, linted: Linted) -> None:
    name, count = _clean(linted.text.shown.file), len(linted.findings)
    suite = Xml.SubElement(
        root, "testsuite", name=name, tests=str(max(1, count)), failures=str(count), errors="0", skipped="0"
    )
    if not count:
        Xml.SubElement(suite, "testcase", classname=name, name="lint")
    for finding in linted.findings:
        line, column = linted.text.shown.line_column(finding.span.start)
        case = Xml.SubElement(suite, "testcase", classname=name, name=f"{finding.code} {line}:{column}")
        failure = Xml.SubElement(case, "failure", type=finding.severity.value, message=_clean(finding.message))
        failure.text = _clean(render([finding], linted.text.shown))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
