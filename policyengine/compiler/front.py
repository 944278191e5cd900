"""Text -> checked policies: what lint and editors need of the compiler. Imports no numpy, so it is there at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from policyengine.compiler.finding_codes import unbound
from policyengine.language import ir, syntax
from policyengine.language.check import check_files
from policyengine.language.checking.plugin_checks import Plugins
from policyengine.language.diagnostics import Diagnostic, Source, in_order
from policyengine.language.parse import parse_file
from policyengine.language.syntax import Span
from policyengine.language.types import Type


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
    return Checked(tuple(tree for _, tree, _ in parsed), policies, in_order([*broken, *wrong, *unknown]), types)
