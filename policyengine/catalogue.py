"""Which plugins there are, and the compiler that is told of them.

The one place where the compiler meets the in-tree plugins: neither imports the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policyengine.compiler import compile as phases
from policyengine.compiler.assemble import Catalogue
from policyengine.compiler.compile import CompileResult, PolicyError
from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.plugins.registry import IN_TREE

__all__ = ["CATALOGUE", "CompileResult", "PolicyError", "checked", "compile_policy", "compile_text"]

CATALOGUE: Final[Catalogue] = IN_TREE


def checked(source: Source) -> tuple[list[ir.Policy], list[Diagnostic]]:
    """The policies of a file without errors, and the findings of parse and check in order of place."""
    return phases.checked(source, CATALOGUE)


def compile_text(text: str, file: str = "<policy>", params: Mapping[str, object] | None = None) -> CompileResult:
    """Compile the policies of a file, named `file` in messages, with values from outside for their params."""
    return phases.compile_text(text, CATALOGUE, file, params)


def compile_policy(text: str, params: Mapping[str, object] | None = None) -> Profile:
    """Compile the one policy of a text. Raises `PolicyError` where it has errors, or is not exactly one policy."""
    return phases.compile_policy(text, CATALOGUE, params)
