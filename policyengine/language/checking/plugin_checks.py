"""`use` and `disable`: plugins by name, and their arguments against the schemas they come with.

The checker knows no plugin: names, abilities and argument schemas are handed to it as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from policyengine.language import ir, syntax
from policyengine.language.checking.findings import Report
from policyengine.language.checking.literal_types import NotPlainError, key_of, plain
from policyengine.language.checking.policy_scope import PolicyScope
from policyengine.language.checking.rule_checks import check_weight
from policyengine.language.diagnostics import listed
from policyengine.language.syntax import Span


class PluginFacts(Struct, frozen=True):
    """What the checker needs to know of a plugin. `arguments`: the JSON schema of what follows `use`."""

    arguments: Mapping[str, Any]
    filters: bool
    scores: bool
    default_weight: int | None = None
    in_base: bool = True
    """Whether `base kubernetes` has it; what a package brings has to be used by name."""


Plugins = Mapping[str, PluginFacts]


def check_use(scope: PolicyScope, member: syntax.Use, plugins: Plugins) -> ir.PluginUse:
    """A `use`."""
    name, weight = member.plugin.text, None
    arguments: dict[str, object] = {}
    facts = plugins.get(name)
    if facts is None:
        unknown_plugin(scope.report, member.plugin, plugins)
    else:
        arguments = _arguments(scope.report, member, facts)
        if member.weight is not None:
            # Weight 0 leaves a plugin's score out and keeps its filter.
            weight = check_weight(scope, member.weight, 0 if facts.filters else 1)
            if not facts.scores:
                scope.report.error("PE2005", f"`{name}` gives no score, so it takes no weight", member.weight.span)
    return ir.PluginUse(name=name, weight=weight, arguments=arguments, span=member.span)


def unknown_plugin(report: Report, name: syntax.NameText, plugins: Plugins) -> None:
    """Reports a name that no plugin has."""
    installed = f"; installed are {listed(plugins)}"
    report.unknown("PE2003", f"no plugin is called `{name.text}`", name.span, name.text, plugins, otherwise=installed)


def check_disabled(report: Report, members: Sequence[syntax.Member], plugins: Plugins) -> dict[str, Span]:
    """The plugins that are disabled. Reports those that are used or disabled twice, or both, and unknown ones."""
    seen: dict[str, str] = {}
    disabled: dict[str, Span] = {}
    for member in members:
        if not isinstance(member, syntax.Use | syntax.Disable):
            continue
        name, what = member.plugin.text, "used" if isinstance(member, syntax.Use) else "disabled"
        if name in seen:
            report.error("PE2002", f"`{name}` is {seen[name]} already, and {what} here", member.plugin.span)
        seen.setdefault(name, what)
        if isinstance(member, syntax.Disable):
            disabled[name] = member.span
            if name not in plugins:
                unknown_plugin(report, member.plugin, plugins)
    return disabled


def _arguments(report: Report, member: syntax.Use, facts: PluginFacts) -> dict[str, object]:
    if member.arguments is None:
        return {}
    try:
        data = plain(member.arguments)
    except NotPlainError as error:
        error.reported(report, "PE2004", "an argument of a plugin is a literal, a list or a map of literals")
        return {}
    wrong = _first_error(facts.arguments, data)
    if wrong is not None:
        path, text = wrong
        report.error("PE2004", f"`{member.plugin.text}`: {text}", _place(member.arguments, path))
        return {}
    assert isinstance(data, dict)
    return data


def _first_error(schema: Mapping[str, Any], data: object) -> tuple[list[object], str] | None:
    """The path and text of the most telling violation, None without one."""
    if data == {} and "required" not in schema:
        return None
    # Imported here: most policies give no arguments, and jsonschema takes long to load.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    found = best_match(Draft202012Validator(dict(schema)).iter_errors(data))
    if found is None:
        return None
    text = str(found.message).replace("'", "`")
    return list(found.absolute_path), text[0].lower() + text[1:]


def _place(arguments: syntax.MapLiteral, path: list[object]) -> Span:
    """Where the value at a path stands."""
    expr: syntax.Expr = arguments
    for step in path:
        inner: syntax.Expr | None = None
        if isinstance(expr, syntax.MapLiteral):
            inner = next((entry.value for entry in expr.entries if key_of(entry) == step), None)
        elif isinstance(expr, syntax.ListLiteral) and isinstance(step, int) and step < len(expr.items):
            inner = expr.items[step].value
        if inner is None:
            break
        expr = inner
    return expr.span
