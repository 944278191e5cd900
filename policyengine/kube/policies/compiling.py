"""From the texts of a ConfigMap or SchedulingPolicy to profiles.

    parse, check, compile ──> lint ──> the policies' own tests ──> profiles

The texts of one object are loaded together, as the files of one command are: they import each other's libraries, and
overlays reach the policies of all of them. What stands beside them holds values for their params.

Nothing here bounds the time that takes: `proving` does.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from policyengine.compiler.assemble import PluginRegistry, plugin_facts
from policyengine.compiler.front import WRONG_PARAM
from policyengine.kube.policies.allow_list import Allowed
from policyengine.kube.policies.params_file import PARAMS_FILE, Given, params_of
from policyengine.kube.policies.precedence import (
    FORBIDDEN,
    INVALID,
    TESTS_FAILED,
    Compiled,
    Finding,
    Problem,
    SourceKey,
)
from policyengine.kube.policies.sources import POLICY_SUFFIX
from policyengine.language.diagnostics import Diagnostic, Severity, Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.language.lint.rules import RULES
from policyengine.language.parse import SourceError, decode_source, parse_file
from policyengine.plain_yaml import PlainYamlError
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import CompileResult, compile_files
from policyengine.trials.policy_test import held_to_tests

logger = logging.getLogger(__name__)

MOST_FINDINGS: Final = 20
"""Findings that a problem names."""
LONGEST: Final = 1024
"""Characters of a finding's message."""
TOO_LARGE: Final = Problem("compiling and testing it takes more memory than there is for it; split it")
_LEVELS: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def compiled(
    data: Mapping[str, str],
    registry: PluginRegistry = IN_TREE,
    fail_level: Severity = Severity.ERROR,
    is_tested: bool = True,
    may: Allowed | None = None,
) -> Compiled:
    """Compile the texts of an object and run the tests in them; the first error is what is wrong with it.

    A bug that the texts meet, here or in a plugin, rejects them too: it is logged, and what served goes on.

    Arguments:
        data: the policies by names that end in `.policy`, and values of params under another name.
        registry: the plugins there are.
        fail_level: the least severity of an opinion of lint's that is an error here.
        is_tested: whether to run the tests.
        may: what they may do; None for everything.
    """
    try:
        return _compiled(data, registry, fail_level, is_tested, may)
    except MemoryError:
        return Compiled(problem=TOO_LARGE)
    except Exception as bug:
        logger.exception("the policies of an object could not be compiled")
        kind = type(bug).__name__
        return Compiled(problem=Problem(f"compiling ended in a {kind}, a bug; the scheduler's log says where"))


def _compiled(
    data: Mapping[str, str], registry: PluginRegistry, fail_level: Severity, is_tested: bool, may: Allowed | None
) -> Compiled:
    texts = {key: text for key, text in data.items() if key.endswith(POLICY_SUFFIX)}
    params = next((key for key in data if key not in texts), PARAMS_FILE)
    try:
        sources = [decode_source(text.encode("utf-8", "surrogatepass"), key) for key, text in texts.items()]
        given = params_of(params, data.get(params, ""))
    except SourceError as error:
        return Compiled(problem=Problem(str(error), 1, 1))
    except PlainYamlError as error:
        return Compiled(problem=Problem(f"`{params}` {error}", error.line, 1 if error.line else 0))
    result = compile_files(sources, {name: one.value for name, one in given.items()}, registry)
    problem = _wrong_param(result, given, params) or _problem(result, _errors(result.diagnostics))
    if problem is None and may is not None:
        problem = _forbidden(result, may)
    if problem is None:
        problem = _problem(result, _opinions(result, registry, fail_level))
    if problem is None and is_tested:
        result = held_to_tests(result, registry)
        problem = _problem(result, _errors(result.diagnostics), TESTS_FAILED)
    return Compiled(problem=problem) if problem is not None else Compiled(tuple(result.profiles))


def _wrong_param(result: CompileResult, given: Mapping[str, Given], file: str) -> Problem | None:
    wrong = [
        Finding(file, given[name].line, given[name].column, WRONG_PARAM, message)
        for name, message in result.wrong_params.items()
    ]
    if not wrong:
        return None
    _, line, column, _, message = wrong[0]
    return Problem(f"`{file}`: {message}", line, column, INVALID, tuple(wrong[:MOST_FINDINGS]), len(wrong))


def _forbidden(result: CompileResult, may: Allowed) -> Problem | None:
    for policy in result.policies:
        if told := may.refusal(policy.scheduler, [one.key for one in policy.annotations]):
            return _told(result, [_finding(policy.source, policy.span.start, told)], FORBIDDEN)
    return None


def _errors(findings: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    return (finding for finding in findings if finding.severity is Severity.ERROR)


def _opinions(result: CompileResult, registry: PluginRegistry, fail_level: Severity) -> Iterator[Diagnostic]:
    """What lint has to say that weighs as much."""
    enough = _LEVELS[: 1 + _LEVELS.index(fail_level)]
    if not any(rule.severity in enough for rule in RULES):
        return
    plugins = plugin_facts(registry)
    for source in result.sources:
        tree, _ = parse_file(source)
        policies = [policy for policy in result.policies if policy.source.file == source.file]
        for finding in lint(source, tree, policies, plugins, Settings()):
            if finding.severity in enough:
                yield finding


def _problem(result: CompileResult, findings: Iterable[Diagnostic], reason: str = INVALID) -> Problem | None:
    """What is wrong, in the words of the first finding; None where there is none."""
    rest = iter(findings)
    named = [
        _finding(result.source_of(one), one.span.start, one.message, one.code) for one in islice(rest, MOST_FINDINGS)
    ]
    return _told(result, named, reason, sum(1 for _ in rest)) if named else None


def _finding(source: Source, at: int, message: str, code: str = "") -> Finding:
    return Finding(source.file, *source.line_column(at), code, message)


def _told(result: CompileResult, named: Sequence[Finding], reason: str, more: int = 0) -> Problem:
    file, line, column, code, message = named[0]
    key = f"`{file}`: " if len(result.sources) > 1 else ""
    shown = tuple(one._replace(message=one.message[:LONGEST]) for one in named)
    return Problem(f"{key}{message}" + (f" [{code}]" if code else ""), line, column, reason, shown, len(named) + more)


async def compile_at_once(key: SourceKey, data: Mapping[str, str], is_tested: bool) -> Compiled:
    """Compiles with the in-tree plugins alone, and holds the event loop for as long: where that harms nobody."""
    return compiled(data, is_tested=is_tested)


FREE = 3
"""Versions in a row that are compiled as they come."""
FIRST, MOST = 1.0, 30.0
"""Seconds until the next one is: doubling, from the first value to the second."""
QUIET = 60.0
"""Seconds without a new version after which all is forgotten."""


class CompileLimiter:
    """When each object's texts may be compiled. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, int]] = {}
        """Key -> when it was compiled last, and how many times in a row."""

    def due(self, key: Hashable) -> float:
        """The earliest time at which the next version is compiled."""
        last, count = self._known.get(key, (0.0, 0))
        return last + min(MOST, FIRST * 2.0 ** (count - FREE)) if count >= FREE else 0.0

    def note(self, key: Hashable, now: float) -> None:
        """A version is compiled now."""
        last, count = self._known.get(key, (now, 0))
        self._known[key] = (now, 1 if now - last >= QUIET else min(count + 1, 32))

    def tidy(self, keys: Container[Any], now: float) -> None:
        """Only these are left. One that comes and goes is no quieter than one that changes."""
        self._known = {key: one for key, one in self._known.items() if key in keys or now - one[0] < QUIET}
