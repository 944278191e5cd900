"""Compiles policies with the in-tree plugins.

The one place where the compiler meets the in-tree plugins: neither imports the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policyengine.compiler import compile as phases
from policyengine.compiler import front
from policyengine.compiler.assemble import PluginRegistry, plugin_facts
from policyengine.compiler.compile import CompileResult, PolicyError
from policyengine.compiler.coverage import Coverage
from policyengine.framework.profile import Profile
from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Source, render
from policyengine.plugins.registry import IN_TREE

__all__ = [
    "CompileResult",
    "PolicyError",
    "checked",
    "checked_files",
    "compile_checked",
    "compile_files",
    "compile_policy",
    "compile_text",
]


def checked(source: Source) -> tuple[list[ir.Policy], list[Diagnostic]]:
    """The policies of a file loaded alone, without errors, and the findings of parse and check in order of place."""
    return checked_files([source])


def checked_files(
    sources: Sequence[Source], registry: PluginRegistry = IN_TREE
) -> tuple[list[ir.Policy], list[Diagnostic]]:
    """The same of files that are loaded together, in order of file and place. The names of the files differ."""
    found = front.checked(sources, plugin_facts(registry))
    return found.policies, found.findings


def compile_files(
    sources: Sequence[Source], params: Mapping[str, object] | None = None, registry: PluginRegistry = IN_TREE
) -> CompileResult:
    """Compile the policies of files that are loaded together, with values from outside for their params."""
    return phases.compile_files(sources, registry, params)


def compile_text(text: str, file: str = "<policy>", params: Mapping[str, object] | None = None) -> CompileResult:
    """Compile the policies of a file, named `file` in messages, with values from outside for their params."""
    return compile_files([Source(file, text)], params)


def compile_checked(
    policy: ir.Policy, watch: Coverage | None = None, registry: PluginRegistry = IN_TREE
) -> Profile | Diagnostic:
    """Compile one checked policy with its params' defaults, watched if need be; a finding where a plugin refuses its
    arguments."""
    return phases.compile_checked(policy, registry, watch)


def compile_policy(text: str, params: Mapping[str, object] | None = None) -> Profile:
    """Compile the one policy of a text. Raises `PolicyError` where it has errors, or is not exactly one policy."""
    result = compile_text(text, params=params)
    if result.failed:
        raise PolicyError(render(result.diagnostics, result.sources[0]), tuple(result.diagnostics))
    if len(result.profiles) != 1:
        raise PolicyError(f"the text holds {len(result.profiles)} policies; one is wanted")
    return result.profiles[0]
