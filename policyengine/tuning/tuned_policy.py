"""The policy that is tuned: its text, and the same text with other weights and defaults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property

from policyengine.compiler.assemble import PluginRegistry
from policyengine.compiler.params import param_values
from policyengine.framework.profile import Profile
from policyengine.language import ir, syntax
from policyengine.language.diagnostics import Edit, Source, render
from policyengine.language.edits import applied
from policyengine.language.parse import parse_file
from policyengine.language.types import Kind
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import checked_files, compile_files
from policyengine.tuning.dimensions import WEIGHT, Dimension, NothingToTune, of_params, of_weight

Values = Mapping[str, str]
"""Name of a dimension -> its value, as written."""


def in_tree() -> PluginRegistry:
    """The plugins of kube-scheduler."""
    return IN_TREE


@dataclass(frozen=True)
class Subject:
    """One policy, with the files that are loaded together with it, and what is given for its params."""

    sources: tuple[Source, ...]
    given: Mapping[str, object]
    plugins: Callable[[], PluginRegistry] = in_tree
    """Gives the plugins that the policy may name; other processes call it, too."""

    def __reduce__(self) -> tuple[type[Subject], tuple[object, ...]]:
        """For other processes: what it was made of, and nothing that was found since."""
        return Subject, (self.sources, self.given, self.plugins)

    @cached_property
    def registry(self) -> PluginRegistry:
        """The plugins that the policy may name."""
        return self.plugins()

    @cached_property
    def policy(self) -> ir.Policy:
        """The checked policy. Raises `NothingToTune` where it is not exactly one, and without errors."""
        policies, findings = checked_files(self.sources, self.registry)
        if len(policies) != 1:
            wrong = render(findings, self.sources[0]) if findings else ""
            raise NothingToTune(wrong or f"there are {len(policies)} policies; one is tuned at a time")
        return policies[0]

    @cached_property
    def dimensions(self) -> list[Dimension]:
        """All that may be varied: params in the order declared, then weights."""
        params = of_params(self.policy, param_values(self.policy.params, self.given))
        weights = [of_weight(name, int(str(literal.value))) for name, literal, _ in self._weights()]
        return [*params, *(weights if len(self.profile({}).scores) > 1 else ())]

    def profile(self, values: Values) -> Profile:
        """The compiled policy with other values. Raises `NothingToTune` where a plugin refuses them."""
        params = {name: value for name, value in values.items() if not name.startswith(WEIGHT)}
        known = {param.name for param in self.policy.params}
        given = {name: value for name, value in self.given.items() if name in known}
        sources = [Source(one.file, applied(one.text, self._weight_edits(one, values))) for one in self.sources]
        found = compile_files(sources, {**given, **params}, self.registry)
        if found.failed:
            raise NothingToTune(render(found.diagnostics, found.sources[0]))
        return found.profiles[0]

    def patched(self, values: Values) -> list[Source]:
        """The texts with these values as defaults and weights."""
        return [
            Source(one.file, applied(one.text, [*self._weight_edits(one, values), *self._default_edits(one, values)]))
            for one in self.sources
        ]

    def patch(self, values: Values) -> str:
        """What is changed by `patched`, as a unified diff."""
        lines: list[str] = []
        for before, after in zip(self.sources, self.patched(values), strict=True):
            old, new = before.text.splitlines(keepends=True), after.text.splitlines(keepends=True)
            lines += unified_diff(old, new, f"a/{before.file}", f"b/{before.file}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def _weight_edits(self, source: Source, values: Values) -> list[Edit]:
        return [
            Edit(literal.span, values[WEIGHT + name])
            for name, literal, file in self._weights()
            if file == source.file and WEIGHT + name in values
        ]

    def _weights(self) -> Iterator[tuple[str, syntax.Literal, str]]:
        """(rule or plugin, its weight, file) of the policy's own scores and uses with a number."""
        for source, file in self._trees:
            for policy in file.policies:
                for member in policy.members:
                    if isinstance(member, syntax.Score | syntax.Use) and isinstance(member.weight, syntax.Literal):
                        name = member.name if isinstance(member, syntax.Score) else member.plugin
                        yield name.text, member.weight, source.file

    def _default_edits(self, source: Source, values: Values) -> Iterator[Edit]:
        params = {(one.file or self.policy.source.file, one.span): one for one in self.policy.params}
        for other, file in self._trees:
            for block in (*file.policies, *file.libraries, *file.overlays) if other is source else ():
                for member in block.members:
                    param = params.get((source.file, member.span))
                    if isinstance(member, syntax.Param) and param is not None and param.name in values:
                        text = values[param.name]
                        quoted = json.dumps(text, ensure_ascii=False) if param.type.kind is Kind.STRING else text
                        yield Edit(member.default.span, quoted)

    @cached_property
    def _trees(self) -> Sequence[tuple[Source, syntax.File]]:
        return [(source, parse_file(source)[0]) for source in self.sources]
