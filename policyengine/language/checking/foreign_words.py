"""Words of Kubernetes and of other languages -> what is written here.

A path of a manifest (`pod.spec.priority`) is found by what the schema says of its fields: their meaning begins with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from policyengine.language import syntax
from policyengine.language.schema import ROOTS, object_info
from policyengine.language.types import Kind, Type

NAMES = {
    "True": "true", "TRUE": "true", "False": "false", "FALSE": "false",
    "self": "pod", "this": "pod", "object": "pod", "input": "pod", "request": "pod",
}  # fmt: skip
"""Names that stand for nothing here -> the one that is meant."""
TYPES = {
    **dict.fromkeys(("integer", "int64", "int32", "long", "uint"), "int"),
    **dict.fromkeys(("float", "float64", "number", "decimal", "real"), "double"),
    **dict.fromkeys(("str", "text", "varchar"), "string"),
    "boolean": "bool", "bytes": "memory", "time": "timestamp", "datetime": "timestamp", "quantity": "memory",
}  # fmt: skip
"""Types of other languages -> the one here."""
NO_NULL = "a policy has no null; what may be absent is asked by `has(…)`, or has a default, `.orValue(…)`"
NULLS = frozenset({"None", "nil", "NULL", "Null", "undefined"})

_FUNCTIONS = {
    **dict.fromkeys(("len", "length", "count", "Len"), "x.size()"),
    **dict.fromkeys(("lower", "toLower", "tolower", "toLowerCase", "to_lower", "lowercase"), "x.lowerAscii()"),
    **dict.fromkeys(("upper", "toUpper", "toupper", "toUpperCase", "to_upper", "uppercase"), "x.upperAscii()"),
    **dict.fromkeys(("strip", "trimSpace", "trim_space"), "x.trim()"),
    **dict.fromkeys(("any", "some", "anyMatch", "contains_any"), "list.exists(x, …)"),
    **dict.fromkeys(("every", "forall", "allMatch"), "list.all(x, …)"),
    **dict.fromkeys(("where", "select", "grep"), "list.filter(x, …)"),
    **dict.fromkeys(("average", "mean"), "list.avg()"),
    **dict.fromkeys(("orElse", "or_else", "getOrElse", "orDefault", "default", "unwrap_or"), "optional.orValue(…)"),
    **dict.fromkeys(("coalesce", "ifnull", "nvl", "isnull"), "optional.orValue(…)"),
    **dict.fromkeys(("get", "lookup"), "map[?key].orValue(…)"),
    **dict.fromkeys(("has", "hasKey", "has_key", "containsKey", "exists_key"), "key in map"),
    **dict.fromkeys(("keys", "values"), "key in map"),
    **dict.fromkeys(("regex", "regexMatch", "regexp", "match", "re_match", "search", "like"), 'text.matches("…")'),
    **dict.fromkeys(("str", "toString", "String", "to_string"), "string(x)"),
    **dict.fromkeys(("float", "toFloat", "number", "toNumber"), "double(x)"),
    **dict.fromkeys(("integer", "parseInt", "atoi", "to_int"), "toInt(text).orValue(…)"),
    **dict.fromkeys(("quantity", "resource"), "2Gi, or toQuantity(text, memory)"),
    **dict.fromkeys(("if", "iff", "ifelse", "cond", "ternary", "case"), "condition ? a : b"),
    **dict.fromkeys(("sprintf", "format", "printf", "concat"), "a + b, or {expression} in the text"),
    **dict.fromkeys(("percent", "percentage", "share"), "ratio(a, b)"),
    "not": "!condition",
    "log": "ln(x)",
}
_SIZES = frozenset({"length", "size", "count", "len"})
_ITEMS = "; it is a list: ask its items, as in `.exists(x, …)`"
_AMOUNTS = {
    "pods": "how many pods there are is `node.podCount`",
    **dict.fromkeys(("ephemeralStorage", "ephemeral_storage", "ephemeral", "disk"), "write `.storage`"),
    **dict.fromkeys(("mem", "ram"), "write `.memory`"),
}
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "pod": {
        "age": "write `now - pod.createdAt`",
        "phase": "a pod that is placed is pending",
        "status": "a pod that is placed is pending",
        "nodeName": "a rule is asked for each node: write `node.name`",
        "schedulerName": 'a policy has the pods of its `scheduler "…"`',
        "cpu": "write `.requests.cpu`",
        "memory": "write `.requests.memory`",
        "resources": "write `.requests` or `.limits`",
    },
    "clusterPod": {
        "age": "write `now - pod.createdAt`, of this one",
        "cpu": "write `.requests.cpu`",
        "memory": "write `.requests.memory`",
        "resources": "write `.requests` or `.limits`",
    },
    "node": {
        "cpu": "write `.free.cpu`, `.used.cpu` or `.allocatable.cpu`",
        "memory": "write `.free.memory`, `.used.memory` or `.allocatable.memory`",
        "requests": "write `.used`",
        "age": "write `now - node.createdAt`",
        **dict.fromkeys(("role", "roles"), "ask `.labels` for `node-role.kubernetes.io/…`"),
    },
    "cluster": {"nodes": "write `nodes`", "pods": "write `pods`"},
    "resources": _AMOUNTS,
    "limits": _AMOUNTS,
}
"""What an object is asked for, and has under another name or not at all: what to do instead."""
_ELSEWHERE = {
    ("clusterPod", "spec.nodeName"): "node",
    ("pod", "metadata.ownerReferences"): "owner",
    ("pod", "status.qosClass"): "qos",
}
"""What the meaning of no field begins with."""


def written(type_: Type, name: str) -> str:
    """The remedy for a field that an object has not, as the end of a message; '' where none is known."""
    if type_.kind in (Kind.LIST, Kind.MAP, Kind.STRING) and name in _SIZES:
        return "; write `.size()`"
    if type_.kind is Kind.LIST:
        return _ITEMS
    meant = _FIELDS.get(type_.name, {}).get(name, "")
    return f"; {meant}" if meant else ""


def vendors(name: str) -> str | None:
    """The key, in quotes, of a resource that is called without its vendor; None where nobody can tell."""
    return '"nvidia.com/gpu"' if name.lower() in ("gpu", "gpus", "nvidia", "nvidia-gpu", "nvidia_gpu") else None


def in_manifest(type_: Type, path: str) -> str | None:
    """The field that holds what an object of Kubernetes has at a path (`spec.priority`); None without one."""
    kinds = ("clusterPod", "pod") if type_.name == "clusterPod" else (type_.name,)
    return _paths(type_).get(path) or next(filter(None, (_ELSEWHERE.get((kind, path)) for kind in kinds)), None)


@cache
def _paths(type_: Type) -> Mapping[str, str]:
    info = object_info(type_)
    fields = info.fields.values() if info is not None else ()
    return {field.doc.replace(":", ",").split(",")[0]: field.name for field in fields if "." in field.doc.split(",")[0]}


def function(name: str) -> str:
    """The remedy for a function that there is not, as the end of a message; '' where none is known."""
    if name in ROOTS:
        return f"; write `{name}`, which is a value"
    return f"; write `{_FUNCTIONS[name]}`" if name in _FUNCTIONS else ""


def key_text(expr: syntax.Expr) -> str | None:
    """What was probably meant as a key in quotes: `nvidia.com/gpu`, `hugepages-2Mi`; None for anything else."""
    text = _unquoted(expr)
    return text if text is not None and ("/" in text or "-" in text) else None


def _unquoted(expr: syntax.Expr) -> str | None:
    match expr:
        case syntax.Name(absolute=False):
            return expr.name
        case syntax.Select(optional=False):
            return _joined(_unquoted(expr.operand), ".", expr.field)
        case syntax.Binary(op="/" | "-" as op):
            return _joined(_unquoted(expr.left), op, _unquoted(expr.right))
        case syntax.QuantityLiteral():
            return f"{expr.number}{expr.suffix}"
        case syntax.Literal(value=int() as number) if number is not True and number is not False:
            return str(number)
        case _:
            return None


def _joined(left: str | None, sign: str, right: str | None) -> str | None:
    return None if left is None or right is None else f"{left}{sign}{right}"


def split_key(expr: syntax.Binary) -> tuple[syntax.Expr, str, int] | None:
    """Of `node.labels.kubernetes.io/arch`: the map, the key that was meant, and where that begins; None for others."""
    path, left = list[str](), expr.left
    while isinstance(left, syntax.Select) and not left.optional:
        if left.field in _KEYED and path:
            break
        path.append(left.field)
        left = left.operand
    else:
        return None
    text = _unquoted(expr.right)
    return (left, f"{'.'.join(reversed(path))}/{text}", left.span.end) if text is not None else None


_KEYED = frozenset(
    {"labels", "annotations", "nodeSelector", "requests", "limits", "capacity", "allocatable", "used", "free"}
)
"""Fields that are maps, or take a key."""
