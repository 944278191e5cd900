"""an item that a list has already

`x in ["a", "b", "a"]` asks for `"a"` twice. The second was meant to be another one, or can go; `--fix` removes it.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Severity, Subject, rule
from policyengine.language.syntax import Span


@rule("PE3510", Severity.WARNING, __doc__)
def repeated_item(subject: Subject) -> Findings:
    """Equal literals in a list that `in` looks into."""
    for node in subject.nodes_of(syntax.Binary):
        if node.op != "in" or not isinstance(node.right, syntax.ListLiteral):
            continue
        seen: set[object] = set()
        before: syntax.ListItem | None = None
        for item in node.right.items:
            value = (type(item.value.value), item.value.value) if isinstance(item.value, syntax.Literal) else None
            if value is not None and value in seen and before is not None:
                edit = Edit(Span(before.span.end, item.span.end), "")
                yield Finding("the list has this item already", item.span, Fix("remove it", (edit,), safe=True))
            seen.add(value)
            before = item
