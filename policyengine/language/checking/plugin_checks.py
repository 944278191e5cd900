"""`use` and `disable`: plugins by name, and their arguments against the schemas they come with.

The checker knows no plugin: names, abilities and argument schemas are handed to it as data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import (
    DUPLICATE_NAME,
    PLUGIN_ARGUMENTS,
    UNKNOWN_PLUGIN,
    WRONG_WEIGHT,
)
from policyengine.language.checking.context import Report, replacing
from policyengine.language.checking.policy_scope import PolicyScope
from policyengine.language.checking.rule_checks import check_weight
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


def check_use(scope: PolicyScope, member: syntax.Use, plugins: Plugins) -> ir.PluginUse | None:
    """A `use`, None (reported) where anything in it is wrong."""
    name = member.plugin.text
    facts = plugins.get(name)
    if facts is None:
        unknown_plugin(scope.report, member.plugin, plugins)
        return None
    # Weight 0 leaves a plugin's score out and keeps its filter.
    smallest = 0 if facts.filters else 1
    weight = check_weight(scope, member.weight, smallest) if member.weight is not None else None
    good = member.weight is None or weight is not None
    if member.weight is not None and not facts.scores:
        scope.report.error(WRONG_WEIGHT, f"`{name}` gives no score, so it takes no weight", member.weight.span)
        good = False
    arguments = _arguments(scope.report, member, facts)
    if arguments is None or not good:
        return None
    return ir.PluginUse(name=name, weight=weight, arguments=arguments, span=member.span)


def unknown_plugin(report: Report, name: syntax.NameText, plugins: Plugins) -> None:
    """Reports a name that no plugin has."""
    close = report.closest(name.text, plugins)
    hint = f"; did you mean `{close}`?" if close else f"; installed are {', '.join(f'`{p}`' for p in plugins)}"
    fix = replacing(name.span, close) if close else None
    report.error(UNKNOWN_PLUGIN, f"no plugin is called `{name.text}`{hint}", name.span, fix)


def contradictions(report: Report, uses: list[syntax.Use], disabled: list[syntax.Disable]) -> None:
    """Reports plugins that are used or disabled twice, or both."""
    seen: dict[str, str] = {}
    members: list[syntax.Use | syntax.Disable] = [*uses, *disabled]
    for member in sorted(members, key=lambda m: m.span.start):
        name, what = member.plugin.text, "used" if isinstance(member, syntax.Use) else "disabled"
        if name in seen:
            report.error(DUPLICATE_NAME, f"`{name}` is {seen[name]} already, and {what} here", member.plugin.span)
        seen.setdefault(name, what)


# --- arguments -------------------------------------------------------------------------------------------


class NotPlainError(Exception):
    """An argument that is no constant: where."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span


def _arguments(report: Report, member: syntax.Use, facts: PluginFacts) -> dict[str, object] | None:
    if member.arguments is None:
        return {}
    try:
        data = plain(member.arguments)
    except NotPlainError as error:
        message = "an argument of a plugin is a literal, a list or a map of literals"
        report.error(PLUGIN_ARGUMENTS, message, error.span)
        return None
    wrong = _first_error(facts.arguments, data)
    if wrong is not None:
        path, text = wrong
        report.error(PLUGIN_ARGUMENTS, f"`{member.plugin.text}`: {text}", _place(member.arguments, path))
        return None
    assert isinstance(data, dict)
    return data


def plain(expr: syntax.Expr) -> object:
    """A literal as the JSON value it is; a bare name before `:` is a key, a quantity its text."""
    match expr:
        case syntax.Literal():
            return expr.value
        case syntax.QuantityLiteral():
            return f"{expr.number}{expr.suffix}"
        case syntax.DurationLiteral():
            return f"{expr.number}{expr.unit}"
        case syntax.Unary(op="-", operand=syntax.Literal(value=int() | float() as number)) if number is not True:
            return -number
        case syntax.ListLiteral():
            return [plain(item.value) for item in expr.items]
        case syntax.MapLiteral():
            return {key_of(entry): plain(entry.value) for entry in expr.entries}
        case _:
            raise NotPlainError(expr.span)


def key_of(entry: syntax.MapEntry) -> str:
    """The key of an entry where a bare name is one."""
    if isinstance(entry.key, syntax.Name):
        return entry.key.name
    if isinstance(entry.key, syntax.Literal) and isinstance(entry.key.value, str):
        return entry.key.value
    raise NotPlainError(entry.key.span)


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
