"""From the keys of a ConfigMap to profiles.

    parse, check, compile ──> lint ──> the policies' own tests ──> profiles

The `*.policy` keys of one ConfigMap are loaded together, as the files of one command are: they import each other's
libraries, and overlays reach the policies of all of them. `params.yaml` beside them holds values for their params.

Nothing here bounds the time that takes: `proving` does.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final

from policyengine.compiler.assemble import PluginRegistry, plugin_facts
from policyengine.kube.policies.allow_list import Allowed
from policyengine.kube.policies.config_map import PARAMS_FILE, Given, read_params
from policyengine.kube.policies.precedence import Compiled, Problem
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

_LEVELS: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def compiled(
    data: Mapping[str, str],
    registry: PluginRegistry = IN_TREE,
    fail_level: Severity = Severity.ERROR,
    is_tested: bool = True,
    may: Allowed | None = None,
) -> Compiled:
    """Compile the keys of a ConfigMap and run the tests in them; the first error is what is wrong with it.

    A bug that the texts meet, here or in a plugin, rejects them too: it is logged, and what served goes on.

    Arguments:
        data: the texts of its `*.policy` keys, and of `params.yaml`.
        registry: the plugins there are.
        fail_level: the least severity of an opinion of lint's that is an error here.
        is_tested: whether to run the tests.
        may: what they may do; None for everything.
    """
    try:
        return _compiled(data, registry, fail_level, is_tested, may)
    except MemoryError:
        return Compiled(problem=Problem("compiling and testing it takes more memory than there is for it; split it"))
    except Exception as bug:
        logger.exception("a ConfigMap's policies could not be compiled")
        kind = type(bug).__name__
        return Compiled(problem=Problem(f"compiling ended in a {kind}, a bug; the scheduler's log says where"))


def _compiled(
    data: Mapping[str, str], registry: PluginRegistry, fail_level: Severity, is_tested: bool, may: Allowed | None
) -> Compiled:
    texts = {key: text for key, text in data.items() if key != PARAMS_FILE}
    try:
        sources = [decode_source(text.encode("utf-8", "surrogatepass"), key) for key, text in texts.items()]
        given = read_params(data.get(PARAMS_FILE, ""))
    except SourceError as error:
        return Compiled(problem=Problem(str(error), 1, 1))
    except PlainYamlError as error:
        return Compiled(problem=Problem(f"`{PARAMS_FILE}` {error}", error.line, 1 if error.line else 0))
    result = compile_files(sources, {name: one.value for name, one in given.items()}, registry)
    problem = _wrong_param(result, given) or _first(result, _errors(result.diagnostics))
    if problem is None and may is not None:
        problem = _forbidden(result, may)
    if problem is None:
        problem = _first(result, _opinions(result, registry, fail_level))
    if problem is None and is_tested:
        result = held_to_tests(result, registry)
        problem = _first(result, _errors(result.diagnostics))
    return Compiled(problem=problem) if problem is not None else Compiled(tuple(result.profiles))


def _wrong_param(result: CompileResult, given: Mapping[str, Given]) -> Problem | None:
    for name, message in result.wrong_params.items():
        return Problem(f"`{PARAMS_FILE}`: {message}", given[name].line, given[name].column)
    return None


def _forbidden(result: CompileResult, may: Allowed) -> Problem | None:
    for policy in result.policies:
        if told := may.refusal(policy.scheduler, [one.key for one in policy.annotations]):
            return _located(result, policy.source, policy.span.start, told)
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


def _first(result: CompileResult, findings: Iterator[Diagnostic]) -> Problem | None:
    for finding in findings:
        return _located(result, result.source_of(finding), finding.span.start, f"{finding.message} [{finding.code}]")
    return None


def _located(result: CompileResult, source: Source, at: int, message: str) -> Problem:
    key = f"`{source.file}`: " if len(result.sources) > 1 else ""
    return Problem(f"{key}{message}", *source.line_column(at))


async def compile_at_once(key: str, data: Mapping[str, str], is_tested: bool) -> Compiled:
    """Compiles with the in-tree plugins alone, and holds the event loop for as long: where that harms nobody."""
    return compiled(data, is_tested=is_tested)


FREE = 3
"""Versions in a row that are compiled as they come."""
FIRST, MOST = 1.0, 30.0
"""Seconds until the next one is: doubling, from the first value to the second."""
QUIET = 60.0
"""Seconds without a new version after which all is forgotten."""


class CompileLimiter:
    """When each ConfigMap may be compiled. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, int]] = {}
        """Key -> when it was compiled last, and how many times in a row."""

    def due(self, key: str) -> float:
        """The earliest time at which the next version is compiled."""
        last, count = self._known.get(key, (0.0, 0))
        return last + min(MOST, FIRST * 2.0 ** (count - FREE)) if count >= FREE else 0.0

    def note(self, key: str, now: float) -> None:
        """A version is compiled now."""
        last, count = self._known.get(key, (now, 0))
        self._known[key] = (now, 1 if now - last >= QUIET else min(count + 1, 32))

    def tidy(self, keys: Container[str], now: float) -> None:
        """Only these are left. One that comes and goes is no quieter than one that changes."""
        self._known = {key: one for key, one in self._known.items() if key in keys or now - one[0] < QUIET}
