"""From paths to outcomes: what `policyengine test` runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from policyengine.commands.installed_plugins import installed_registry
from policyengine.commands.policies import params_beside
from policyengine.commands.policy_files import SUITE, by_text, texts_and_errors
from policyengine.commands.progress import Told, progress
from policyengine.compiler.coverage import Coverage, Point
from policyengine.compiler.params import ParamError, with_params
from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Severity, Source, render
from policyengine.language.ir.test_nodes import vacuous
from policyengine.language.mutants import Mutant
from policyengine.language.parse import SourceError
from policyengine.language.policy_text import PolicyText
from policyengine.language.syntax import Span
from policyengine.policy_compiler import checked_files
from policyengine.regular_file import is_folder
from policyengine.trials.policy_test import Mutation, Outcome, TestedPolicy, in_file_tests, mutate, run_tests
from policyengine.trials.policy_test_verdict import Failure

if TYPE_CHECKING:
    from policyengine.commands.testing.suite import Suite


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked for. `mutants`: how many changes are tried a policy, 0 for none."""

    coverage: bool = False
    mutants: int = 0
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placed:
    """A place in a file as the user sees it."""

    source: Source
    span: Span

    @property
    def file(self) -> str:
        """The file's name."""
        return self.source.file

    @property
    def line_column(self) -> tuple[int, int]:
        """Both from 1."""
        return self.source.line_column(self.span.start)


@dataclass(frozen=True, slots=True)
class TestReport:
    """One test. `status`: `passed`, `failed`, or `vacuous` for one that proves nothing."""

    __test__ = False  # not one of pytest's

    policy: str
    name: str
    place: Placed
    status: str
    failures: tuple[tuple[Placed, Failure], ...] = ()


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """What the tests of a policy saw of it."""

    policy: str
    seen: int
    outcomes: int
    missing: tuple[tuple[Placed, Point], ...]


@dataclass(frozen=True, slots=True)
class MutationReport:
    """What the tests of a policy would not notice."""

    policy: str
    mutation: Mutation
    survivors: tuple[tuple[Placed, Mutant], ...]


@dataclass(slots=True)
class Report:
    """Everything a run found."""

    tests: list[TestReport] = field(default_factory=list)
    coverage: list[CoverageReport] = field(default_factory=list)
    mutations: list[MutationReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Input that cannot be used."""
    policies: int = 0

    @property
    def passed(self) -> bool:
        """Whether there are tests, and all of them passed."""
        return bool(self.tests) and all(test.status == "passed" for test in self.tests) and not self.problems

    @property
    def coverage_percent(self) -> float:
        """The share of outcomes seen, over all policies."""
        total = sum(one.outcomes for one in self.coverage)
        return 100.0 * sum(one.seen for one in self.coverage) / total if total else 100.0

    @property
    def mutation_percent(self) -> float:
        """The share of mutants noticed, over all policies."""
        tried = sum(one.mutation.tried for one in self.mutations)
        survived = sum(len(one.survivors) for one in self.mutations)
        return 100.0 * (tried - survived) / tried if tried else 100.0


@dataclass(slots=True)
class _Subject:
    """A policy, the text it stands in, and all that is run of it."""

    texts: Mapping[str, PolicyText]
    """The texts that were loaded together, by the names of their sources."""
    tested: list[TestedPolicy]
    suites: dict[str, Source] = field(default_factory=dict)

    @property
    def policy(self) -> ir.Policy:
        """The policy."""
        return self.tested[0].policy

    @property
    def file(self) -> str:
        """The real path of the file the policy is written in."""
        return os.path.realpath(self.texts[self.policy.source.file].shown.file)

    def place(self, file: str, span: Span) -> Placed:
        """A place in a file that the user sees; `file` '' is the policy's own."""
        suite = self.suites.get(file)
        if suite is not None:
            return Placed(suite, span)
        text = self.texts[file or self.policy.source.file]
        found = text.placed(Diagnostic("", Severity.ERROR, "", text.source.file, span))
        return Placed(text.shown, found.span)


def run(paths: Sequence[str], settings: Settings) -> Report:
    """Run what the paths hold."""
    report = Report()
    subjects: list[_Subject] = []
    used: set[str] = set()
    suites = [path for name in paths for path in _suites(Path(name))]
    texts, errors = texts_and_errors([name for name in paths if not name.endswith(SUITE)])
    report.problems += [str(error) for error in errors if not (suites and "holds no `*.policy`" in str(error))]
    subjects += _subjects(texts, settings, report, used)
    for path in suites:
        _add_suite(path, subjects, settings, report, used)
    for name in settings.params.keys() - used:
        if not report.problems:
            report.problems.append(f"no policy has a param `{name}`")
    if not report.problems:
        with progress("running tests") as told:
            for at, subject in enumerate(subjects):

                def told_of_all(share: float, before: int = at) -> None:
                    told((before + share) / len(subjects))

                _run(subject, settings, report, told_of_all)
    report.policies = len(subjects)
    return report


def _suites(path: Path) -> Iterator[Path]:
    if is_folder(path):
        yield from sorted(file for file in path.rglob(f"*{SUITE}") if file.is_file())
    elif path.name.endswith(SUITE):
        yield path


def _subjects(texts: list[PolicyText], settings: Settings, report: Report, used: set[str]) -> list[_Subject]:
    """The policies of texts that are loaded together, with their in-file tests."""
    registry = installed_registry()
    policies, findings = checked_files([text.source for text in texts], registry)
    errors = [one for one in findings if one.severity is Severity.ERROR]
    report.problems += [render(found, text.shown).rstrip() for text, found in by_text(texts, errors) if found]
    by_name = {text.source.file: text for text in texts}
    found: list[_Subject] = []
    for policy in policies:
        text = by_name[policy.source.file]
        try:
            params = {**params_beside([text]), **settings.params}
            own = {param.name: params[param.name] for param in policy.params if param.name in params}
            used.update(own)
            given = with_params(policy, own)
        except (ParamError, SourceError) as error:
            report.problems.append(f"`{text.shown.file}`: {error}")
            continue
        found.append(_Subject(by_name, [TestedPolicy(given, in_file_tests(policy), registry=registry)]))
    return found


def _add_suite(path: Path, subjects: list[_Subject], settings: Settings, report: Report, used: set[str]) -> None:
    """Add the tests of a suite to the policy they are about, which is loaded if no path named it."""
    from policyengine.commands.testing.suite import read_suite
    from policyengine.commands.testing.suite_steps import SuiteError

    try:
        suite = read_suite(path)
        subject = _about(suite, subjects)
        if subject is None:
            texts, errors = texts_and_errors([str(suite.policy_file)])
            if errors:
                raise SuiteError("; ".join(map(str, errors)))
            loaded = _subjects(texts, settings, report, used)
            for one in loaded:
                one.tested[0] = replace(one.tested[0], tests=())
            subjects += loaded
            subject = _about(suite, loaded)
        if subject is not None:
            subject.tested.append(suite.tested(subject.tested[0]))
            subject.suites[suite.source.file] = suite.source
        elif not report.problems:
            raise SuiteError(f"`{suite.policy_file}` holds no policy that it is about")
    except SuiteError as error:
        report.problems.append(f"`{path}`: {error}")
    except SourceError as error:
        report.problems.append(str(error))


def _about(suite: Suite, subjects: Sequence[_Subject]) -> _Subject | None:
    file = os.path.realpath(suite.policy_file)  # unlike `resolve`, it takes a link to itself
    for subject in subjects:
        if suite.policy_name in (None, subject.policy.name) and subject.file == file:
            return subject
    return None


# --- running ---------------------------------------------------------------------------------------------


def _run(subject: _Subject, settings: Settings, report: Report, told: Told) -> None:
    """Run what there is of a policy. Of what is told, each test that is run counts as much as each change tried."""
    policy = subject.policy
    tests = sum(len(tested.tests) for tested in subject.tested)
    steps, done = tests + settings.mutants, 0
    coverage = Coverage(policy) if settings.coverage else None
    good = True
    for tested in subject.tested:
        proofs = {test.name: vacuous(test) for test in tested.tests}
        for outcome in run_tests(tested, coverage=coverage):
            one = _reported(subject, outcome, proofs[outcome.name])
            good = good and one.status == "passed"
            report.tests.append(one)
            done += 1
            told(done / steps)
    if coverage is not None:
        seen, outcomes = coverage.outcomes()
        missing = tuple((subject.place(one.file, one.span), one) for one in coverage.points if one.missing)
        report.coverage.append(CoverageReport(policy.name, seen, outcomes, missing))
    if settings.mutants and good and tests:
        mutation = mutate(
            subject.tested, settings.mutants, told=lambda share: told((tests + share * settings.mutants) / steps)
        )
        survivors = tuple((subject.place(one.file, one.span), one) for one in mutation.survivors)
        report.mutations.append(MutationReport(policy.name, mutation, survivors))


def _reported(subject: _Subject, outcome: Outcome, nothing: str | None) -> TestReport:
    failures = tuple((subject.place(outcome.file, one.span), one) for one in outcome.failures)
    place = subject.place(outcome.file, outcome.span)
    status = "passed" if outcome.passed else "failed"
    if outcome.passed and nothing is not None:
        status, failures = "vacuous", ((place, Failure(nothing, outcome.span)),)
    return TestReport(outcome.policy, outcome.name, place, status, failures)
