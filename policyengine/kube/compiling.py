"""From the text of a ConfigMap to profiles, beside the event loop: compiling a large policy takes longer than a
binding may wait."""

from __future__ import annotations

import asyncio

from policyengine.catalogue import compile_text
from policyengine.kube.reload import Compiled
from policyengine.kube.rivals import Problem
from policyengine.language.diagnostics import Severity
from policyengine.language.parse import SourceError, decode_source

INLINE_LIMIT = 4096
"""Characters of a text that compiles faster than a thread starts to pay."""


def compiled(text: str, file: str) -> Compiled:
    """Compile one text; its first error is what is wrong with it."""
    try:
        source = decode_source(text.encode("utf-8", "surrogatepass"), file)
    except SourceError as error:
        return Compiled(problem=Problem(str(error), 1, 1))
    result = compile_text(source.text, file)
    for finding in result.diagnostics:
        if finding.severity is Severity.ERROR:
            line, column = result.source.line_column(finding.span.start)
            return Compiled(problem=Problem(f"{finding.message} [{finding.code}]", line, column))
    return Compiled(tuple(result.profiles))


async def compile_beside(text: str, file: str) -> Compiled:
    """Compile in a thread, where the text is long."""
    if len(text) <= INLINE_LIMIT:
        return compiled(text, file)
    return await asyncio.to_thread(compiled, text, file)
