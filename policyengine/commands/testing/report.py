"""The outcomes of tests as text, JSON and JUnit XML."""

from __future__ import annotations

import json
from collections.abc import Iterator

from policyengine.commands.testing.execution import Placed, Report, TestReport
from policyengine.control_characters import xml_text
from policyengine.language.diagnostics import excerpt, printable

_WORDS = {"failed": "FAIL", "vacuous": "VACUOUS"}
_SEEN = {
    "holds": "seen to hold",
    "refuses": "seen to refuse",
    "refuses one": "seen to refuse one",
    "passes a node": "seen to pass a node",
}
_RED, _GREEN, _BOLD, _RESET = "\x1b[1;31m", "\x1b[1;32m", "\x1b[1m", "\x1b[0m"


def written(report: Report, output: str, color: bool) -> str:
    """The report in a format, with the line ending."""
    if output == "json":
        return json.dumps(as_json(report), indent=2, ensure_ascii=False) + "\n"
    if output == "junit":
        return as_junit(report)
    return "".join(f"{line}\n" for line in _lines(report, color))


# --- text ------------------------------------------------------------------------------------------------


def _lines(report: Report, color: bool) -> Iterator[str]:
    for test in report.tests:
        if test.status != "passed":
            yield from _of_test(test, color)
    for coverage in report.coverage:
        yield f'policy "{printable(coverage.policy)}": {_percent(coverage.seen, coverage.outcomes)} covered'
        for place, point in coverage.missing:
            never = " and never ".join(_SEEN.get(outcome, outcome) for outcome in point.missing)
            yield f"  {_where(place)}: {printable(point.what)} was never {never}"
    for one in report.mutations:
        mutation = one.mutation
        of = f" of {mutation.possible}" if mutation.tried < mutation.possible else ""
        noticed = mutation.tried - len(one.survivors)
        yield f'policy "{printable(one.policy)}": {_percent(noticed, mutation.tried)}{of} changes noticed'
        for place, mutant in one.survivors:
            yield f"  {_where(place)}: no test notices that {printable(mutant.change)}"
    if report.tests or not report.problems:
        yield _summary(report, color)


def _of_test(test: TestReport, color: bool) -> Iterator[str]:
    word = _paint(_WORDS[test.status], _RED, color)
    yield f'{word} {_where(test.place)}: policy "{printable(test.policy)}", test "{printable(test.name)}"'
    for place, failure in test.failures:
        yield f"  {_where(place)}: {_paint(printable(failure.message), _BOLD, color)}"
        line = place.line_column[0]
        start = place.source.line_start(line)
        text, marks = excerpt(place.source.line(line), place.span.start - start, place.span.end - start)
        margin = " " * len(str(line))
        yield f"  {line} | {text}".rstrip()
        yield f"  {margin} | {marks}"
        yield from (f"  {margin} = {printable(detail)}" for detail in failure.details)
    yield ""


def _summary(report: Report, color: bool) -> str:
    failed = sum(test.status == "failed" for test in report.tests)
    nothing = sum(test.status == "vacuous" for test in report.tests)
    parts = [f"{_plural(len(report.tests), 'test')} of {_plural(report.policies, 'policy', 'policies')}"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{nothing} proving nothing"] if nothing else []
    parts += [] if failed or nothing or not report.tests else ["all passed"]
    if report.coverage:
        percent = report.coverage_percent
        parts.append(f"{percent:.{int(percent != round(percent))}f} % covered")
    if report.mutations:
        parts.append(f"{report.mutation_percent:.1f} % of changes noticed")
    return _paint(", ".join(parts), _GREEN if report.passed else _RED, color)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole if whole else 100} % ({part} of {whole})"


def _where(place: Placed) -> str:
    line, column = place.line_column
    return f"{printable(place.file)}:{line}:{column}"


def _plural(count: int, what: str, many: str = "") -> str:
    return f"{count} {what if count == 1 else many or what + 's'}"


def _paint(text: str, colour: str, color: bool) -> str:
    return f"{colour}{text}{_RESET}" if color else text


# --- JSON ------------------------------------------------------------------------------------------------


def as_json(report: Report) -> dict[str, object]:
    """See docs/testing.md for the fields."""
    found: dict[str, object] = {
        "passed": report.passed,
        "tests": [
            {
                "policy": test.policy,
                "name": test.name,
                **_json_place(test.place),
                "status": test.status,
                "failures": [
                    {**_json_place(place), "message": failure.message, "details": list(failure.details)}
                    for place, failure in test.failures
                ],
            }
            for test in report.tests
        ],
    }
    if report.coverage:
        found["coverage"] = [
            {
                "policy": one.policy,
                "seen": one.seen,
                "outcomes": one.outcomes,
                "missing": [
                    {**_json_place(place), "what": point.what, "never": list(point.missing)}
                    for place, point in one.missing
                ],
            }
            for one in report.coverage
        ]
    if report.mutations:
        found["mutation"] = [
            {
                "policy": one.policy,
                "tried": one.mutation.tried,
                "possible": one.mutation.possible,
                "survivors": [{**_json_place(place), "change": mutant.change} for place, mutant in one.survivors],
            }
            for one in report.mutations
        ]
    return found


def _json_place(place: Placed) -> dict[str, object]:
    line, column = place.line_column
    return {"file": place.file, "line": line, "column": column}


# --- JUnit -----------------------------------------------------------------------------------------------


def as_junit(report: Report) -> str:
    """JUnit XML: a testsuite a policy, a testcase a test. The same report gives the same bytes: no times, no host.

    Only what Jenkins' schema of it allows (junit-10.xsd): the strictest reader there is.
    """
    from xml.etree import ElementTree

    suites: dict[tuple[str, str], list[TestReport]] = {}
    for test in report.tests:
        suites.setdefault((test.policy, test.place.file), []).append(test)
    root = ElementTree.Element("testsuites", _counts(report.tests))
    for (policy, file), tests in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": xml_text(policy), **_counts(tests), "skipped": "0"})
        for test in tests:
            names = {"name": xml_text(test.name), "classname": xml_text(f"{file}:{policy}"), "time": "0"}
            case = ElementTree.SubElement(suite, "testcase", names)
            for at, failure in test.failures:
                text = "\n".join([f"{_where(at)}: {failure.message}", *failure.details])
                said = {"message": xml_text(failure.message), "type": test.status}
                ElementTree.SubElement(case, "failure", said).text = xml_text(text)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _counts(tests: list[TestReport]) -> dict[str, str]:
    failures = sum(test.status != "passed" for test in tests)
    return {"tests": str(len(tests)), "failures": str(failures), "errors": "0", "time": "0"}
