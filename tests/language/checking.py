"""What the checker's tests share: policies from a line or two, plugins that exist only here."""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.check import check_files
from policyengine.language.checking.plugin_checks import PluginFacts
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.parse import parse_file

PLUGINS = {
    "NodeResourcesFit": PluginFacts(
        {
            "type": "object",
            "properties": {"strategy": {"enum": ["LeastAllocated", "MostAllocated"]}, "ignored": {"type": "array"}},
            "additionalProperties": False,
        },
        filters=True,
        scores=True,
        default_weight=1,
    ),
    "ImageLocality": PluginFacts({"type": "object"}, filters=False, scores=True, default_weight=1),
    "NodeName": PluginFacts({"type": "object"}, filters=True, scores=False),
}


def checked(text: str) -> tuple[list[ir.Policy], list[Diagnostic], Source]:
    """The policies of a text and the checker's findings; the text has to parse."""
    source = Source("p.policy", text)
    file, wrong = parse_file(source)
    assert not wrong, wrong
    policies, findings = check_files([(file, source)], PLUGINS)
    return policies, findings, source


def policy(members: str) -> ir.Policy:
    """The one policy with these members; it has to be without findings."""
    policies, findings, _ = checked(f'policy "p" {{\n{members}\n}}')
    assert not findings, [finding.message for finding in findings]
    return policies[0]


def let(expression: str, members: str = "") -> ir.Expr:
    """The typed tree of an expression, as the value of a let."""
    return policy(f"{members}\nlet it = {expression}").lets[-1].value


def findings(members: str) -> list[Diagnostic]:
    """What is wrong with a policy of these members."""
    return checked(f'policy "p" {{\n{members}\n}}')[1]


def wrong(expression: str, members: str = "") -> list[Diagnostic]:
    """What is wrong with an expression, as the value of a let."""
    return findings(f"{members}\nlet it = {expression}")


def together(**files: str) -> tuple[list[ir.Policy], list[Diagnostic]]:
    """The policies of files that are loaded together, by name, and the checker's findings; they have to parse."""
    parsed = []
    for name, text in files.items():
        source = Source(f"{name}.policy", text)
        file, wrong = parse_file(source)
        assert not wrong, wrong
        parsed.append((file, source))
    return check_files(parsed, PLUGINS)
