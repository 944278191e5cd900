"""Keys that lack their quotes: `node.labels.kubernetes.io/arch`, `{nvidia.com/gpu: 8}`."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import UNKNOWN_FIELD, UNKNOWN_NAME
from policyengine.language.checking.context import Context
from policyengine.language.checking.field_access import shown_path
from policyengine.language.checking.foreign_words import key_text, split_key
from policyengine.language.checking.report import error_at, replacing, safely_replacing
from policyengine.language.ir.ir_walk import is_error
from policyengine.language.schema import ROOTS
from policyengine.language.syntax import Span


def check_split_key(context: Context, node: syntax.Binary) -> ir.Expr | None:
    """Reports `node.labels.kubernetes.io/arch`; None for a division."""
    found = split_key(node)
    if found is None or not isinstance(node.right, syntax.Name) or not _is_unknown(context, node.right.name):
        return None
    operand, key, start = found
    if is_error(context.check(operand)):
        return error_at(node.span)
    message = f'a key with `.` or `/` stands in quotes: `{shown_path(operand)}[?"{key}"].orValue(…)`'
    fix = replacing(Span(start, node.span.end), f'[?"{key}"]')
    return context.failed(UNKNOWN_FIELD, message, node.span, fix)


def check_keys(context: Context, node: syntax.MapLiteral) -> ir.Expr | None:
    """Reports a key such as `nvidia.com/gpu`; None where all are expressions."""
    for entry in node.entries:
        text = key_text(entry.key)
        names = [one.name for one in syntax.expression_nodes.walk(entry.key) if isinstance(one, syntax.Name)]
        if text is not None and names and _is_unknown(context, names[0]):
            instead = f'"{text}"'
            message = f"a key with `/` or `-` stands in quotes: `{instead}`"
            return context.failed(UNKNOWN_NAME, message, entry.key.span, safely_replacing(entry.key.span, instead))
    return None


def _is_unknown(context: Context, name: str) -> bool:
    return name not in ROOTS and name not in context.locals and name not in context.names.visible
