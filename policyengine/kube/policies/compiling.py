"""From the keys of a ConfigMap to profiles, beside the event loop: compiling a policy takes longer than a binding may
wait.

    parse, check, compile ──> lint ──> the policies' own tests ──> profiles

The `*.policy` keys of one ConfigMap are loaded together, as the files of one command are: they import each other's
libraries, and overlays reach the policies of all of them. `params.yaml` beside them holds values for their params.

A thread of Python's shares the interpreter with the event loop, which gets it back when the thread's turn is over. The
turns are short while something is compiled, so that the loop is never held for long.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from policyengine.catalogue import CATALOGUE, CompileResult, compile_files
from policyengine.compiler.assemble import Catalogue, plugin_facts
from policyengine.kube.policies.params_file import PARAMS_FILE, Given, read_params
from policyengine.kube.policies.precedence import Problem
from policyengine.kube.policies.reload import Compile, Compiled
from policyengine.language.diagnostics import Diagnostic, Severity, Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.language.lint.rules import RULES
from policyengine.language.parse import SourceError, decode_source, parse_file
from policyengine.plain_yaml import PlainYamlError
from policyengine.trials.policy_gate import held_to_tests

TURN: Final = 0.0005
"""Seconds for which the compiling thread may keep the interpreter while the event loop wants it. Python's own 5 ms
would come on top of every wait of the loop's."""
_USUAL_TURN: Final = sys.getswitchinterval()
_LEVELS: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def compiled(
    data: Mapping[str, str], catalogue: Catalogue = CATALOGUE, fail_level: Severity = Severity.ERROR
) -> Compiled:
    """Compile the keys of a ConfigMap and run the tests in them; the first error is what is wrong with it.

    Arguments:
        data: the texts of its `*.policy` keys, and of `params.yaml`.
        catalogue: the plugins there are.
        fail_level: the least severity of an opinion of lint's that is an error here.
    """
    texts = {key: text for key, text in data.items() if key != PARAMS_FILE}
    try:
        sources = [decode_source(text.encode("utf-8", "surrogatepass"), key) for key, text in texts.items()]
        given = read_params(data.get(PARAMS_FILE, ""))
    except SourceError as error:
        return Compiled(problem=Problem(str(error), 1, 1))
    except PlainYamlError as error:
        return Compiled(problem=Problem(f"`{PARAMS_FILE}` {error}", error.line, 1 if error.line else 0))
    result = compile_files(sources, {name: one.value for name, one in given.items()}, catalogue)
    problem = _wrong_param(result, given) or _first(result, _errors(result.diagnostics))
    if problem is None:
        problem = _first(result, _opinions(result, catalogue, fail_level))
    if problem is None:
        result = held_to_tests(result, catalogue)
        problem = _first(result, _errors(result.diagnostics))
    return Compiled(problem=problem) if problem is not None else Compiled(tuple(result.profiles))


def _wrong_param(result: CompileResult, given: Mapping[str, Given]) -> Problem | None:
    for name, message in result.wrong_params.items():
        return Problem(f"`{PARAMS_FILE}`: {message}", given[name].line, given[name].column)
    return None


def _errors(findings: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    return (finding for finding in findings if finding.severity is Severity.ERROR)


def _opinions(result: CompileResult, catalogue: Catalogue, fail_level: Severity) -> Iterator[Diagnostic]:
    """What lint has to say that weighs as much."""
    enough = _LEVELS[: 1 + _LEVELS.index(fail_level)]
    if not any(rule.severity in enough for rule in RULES):
        return
    plugins = plugin_facts(catalogue)
    for source in result.sources:
        tree, _ = parse_file(source)
        policies = [policy for policy in result.policies if policy.source.file == source.file]
        for finding in lint(source, tree, policies, plugins, Settings()):
            if finding.severity in enough:
                yield finding


def _first(result: CompileResult, findings: Iterator[Diagnostic]) -> Problem | None:
    for finding in findings:
        source = result.source_of(finding)
        line, column = source.line_column(finding.span.start)
        return Problem(f"{_key(source, result)}{finding.message} [{finding.code}]", line, column)
    return None


def _key(source: Source, result: CompileResult) -> str:
    """Which key a finding is in, where there are several."""
    return f"`{source.file}`: " if len(result.sources) > 1 else ""


def compiler_with(catalogue: Catalogue, fail_level: Severity = Severity.ERROR) -> Compile:
    """What compiles with these plugins, in a thread."""

    async def compile_beside(data: Mapping[str, str]) -> Compiled:
        with _short_turns():
            return await asyncio.to_thread(compiled, data, catalogue, fail_level)

    return compile_beside


@contextmanager
def _short_turns() -> Iterator[None]:
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(_USUAL_TURN)


async def compile_at_once(data: Mapping[str, str]) -> Compiled:
    """Compiles with the in-tree plugins alone, and holds the event loop for as long: where that harms nobody."""
    return compiled(data)
