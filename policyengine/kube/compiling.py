"""From the keys of a ConfigMap to profiles, beside the event loop: compiling a large policy takes longer than a binding
may wait.

The `*.policy` keys of one ConfigMap are loaded together, as the files of one command are: they import each other's
libraries, and overlays reach the policies of all of them. `params.yaml` beside them holds values for their params.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from policyengine.catalogue import CATALOGUE, CompileResult, compile_files
from policyengine.compiler.assemble import Catalogue
from policyengine.kube.params_file import PARAMS_FILE, Given, read_params
from policyengine.kube.plain_yaml import PlainYamlError
from policyengine.kube.reload import Compile, Compiled
from policyengine.kube.rivals import Problem
from policyengine.language.diagnostics import Severity, Source
from policyengine.language.parse import SourceError, decode_source
from policyengine.scheduler.policy_gate import held_to_tests

INLINE_LIMIT = 4096
"""Characters of texts that compile faster than a thread starts to pay."""


def compiled(data: Mapping[str, str], catalogue: Catalogue = CATALOGUE) -> Compiled:
    """Compile the keys of a ConfigMap and run the tests in them; the first error is what is wrong with it.

    Arguments:
        data: the texts of its `*.policy` keys, and of `params.yaml`.
        catalogue: the plugins there are.
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
    result = held_to_tests(result, catalogue)
    problem = _wrong_param(result, given) or _first_error(result)
    return Compiled(problem=problem) if problem is not None else Compiled(tuple(result.profiles))


def _wrong_param(result: CompileResult, given: Mapping[str, Given]) -> Problem | None:
    for name, message in result.wrong_params.items():
        return Problem(f"`{PARAMS_FILE}`: {message}", given[name].line, given[name].column)
    return None


def _first_error(result: CompileResult) -> Problem | None:
    for finding in result.diagnostics:
        if finding.severity is Severity.ERROR:
            source = result.source_of(finding)
            line, column = source.line_column(finding.span.start)
            return Problem(f"{_key(source, result)}{finding.message} [{finding.code}]", line, column)
    return None


def _key(source: Source, result: CompileResult) -> str:
    """Which key a finding is in, where there are several."""
    return f"`{source.file}`: " if len(result.sources) > 1 else ""


def compiler_with(catalogue: Catalogue) -> Compile:
    """What compiles with these plugins: at once what is short, in a thread what is long."""

    async def compile_beside(data: Mapping[str, str]) -> Compiled:
        if sum(map(len, data.values())) <= INLINE_LIMIT:
            return compiled(data, catalogue)
        return await asyncio.to_thread(compiled, data, catalogue)

    return compile_beside


compile_beside = compiler_with(CATALOGUE)
"""Compiles with the in-tree plugins alone."""
