"""Text -> checked policies, and the findings that need no more: what lint and editors need of the compiler.

Imports no numpy, so it is there at once. What the checker can say alone has its codes in `language.checking`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from policyengine.language import ir, syntax
from policyengine.language.check import check_files
from policyengine.language.checking.plugin_checks import Plugins
from policyengine.language.diagnostics import Diagnostic, Severity, Source, in_order, pages_of, register
from policyengine.language.ir.ir_walk import expressions_in, fields
from policyengine.language.parse import parse_file
from policyengine.language.syntax import Span
from policyengine.language.types import Type

WRONG_PARAM = "PE2901"
WRONG_ARGUMENTS = "PE2902"
NOT_BOUND = "PE2903"
FAILED_TEST = "PE2950"

register(
    pages_of("""\
PE2901 a parameter cannot have the value given
A param is set from outside (`--param`, `params.yaml`) to a value of its type, within its `range` or
among its `values`. Names of params that the policy does not have are refused.

PE2902 a plugin refuses its arguments
The arguments fit the plugin's schema one by one, but not together. The message is the plugin's.

PE2903 a field that has no value here
`pod.queuedAt` and `pod.attempts` change while a pod waits; which gang it belongs to does not, and is
told before the pod is queued.

PE2950 a test of the policy fails
The tests in a policy are run before it serves; what fails them is not loaded, and what served before
goes on. `policyengine test` shows what was expected, what happened and why.
""")
)
WAITING = frozenset({("pod", "queuedAt"), ("pod", "attempts")})


def unbound(policy: ir.Policy) -> list[Diagnostic]:
    """A finding for each use of such a field, through lets too."""
    values = {let.name: let.value for let in policy.lets}
    own = policy.source.file
    return [
        Diagnostic(NOT_BOUND, Severity.ERROR, f"`{'.'.join(field.path)}` has no value in a gang", own, expr.span)
        for gang in policy.gangs
        for expr in expressions_in(gang)
        for field in fields(expr, values.get)
        if field.path in WAITING
    ]


class Checked(NamedTuple):
    """Files that are loaded together, after parse and check."""

    trees: tuple[syntax.File, ...]
    """One for each source, without what is broken."""
    policies: list[ir.Policy]
    """Those without errors."""
    findings: list[Diagnostic]
    """In order of file and place."""
    types: Mapping[str, Mapping[Span, Type]]
    """File -> place -> the type of the expression that stands there, of all that were checked and are no error."""


Parsed = tuple[Source, syntax.File, Sequence[Diagnostic]]
"""A source and what `parse_file` makes of it."""


def checked(sources: Sequence[Source], plugins: Plugins) -> Checked:
    """Parses and checks files that are loaded together; their names differ. `plugins`: all that a policy may name."""
    return checked_trees([(source, *parse_file(source)) for source in sources], plugins)


def checked_trees(parsed: Sequence[Parsed], plugins: Plugins) -> Checked:
    """The same of files that are parsed already."""
    types: dict[str, Mapping[Span, Type]] = {}
    policies, wrong = check_files([(tree, source) for source, tree, _ in parsed], plugins, types)
    unknown = [finding for policy in policies for finding in unbound(policy)]
    broken = [finding for _, _, found in parsed for finding in found]
    whole = [policy for policy in policies if not any(_stands_in(policy, finding) for finding in (*broken, *unknown))]
    return Checked(tuple(tree for _, tree, _ in parsed), whole, in_order([*broken, *wrong, *unknown]), types)


def _stands_in(policy: ir.Policy, finding: Diagnostic) -> bool:
    """Whether it is about the policy's text: a member that does not parse is not in the tree that is checked."""
    return finding.file == policy.source.file and policy.span.start <= finding.span.start <= policy.span.end
