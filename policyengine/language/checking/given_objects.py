"""What a test may say of the nodes and pods it gives: the fields of the schema, and the form of their values.

Values are plain data, in policies and YAML suites alike. What follows from other things (`free`, `podCount`, `qos`)
is not given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from policyengine import quantity
from policyengine.language.checking.foreign_words import vendors
from policyengine.language.diagnostics import listed
from policyengine.language.schema import OBJECTS, POD_GROUP
from policyengine.language.types import DYN, STRING, TIMESTAMP, Kind, Type, map_of
from policyengine.language.values import EvaluationError, parse_timestamp, with_article
from policyengine.suggestion import closest

RAW: Final = map_of(STRING, DYN)
"""`spec` and `status`: whatever the Kubernetes object has there."""
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:ms|s|min|h|d)", re.ASCII)
_AMOUNTS = frozenset({"resources", "limits"})
_NATIVE = frozenset({"cpu", "memory", "storage", "ephemeral-storage", "pods"})

FOLLOWS: Final[Mapping[str, Mapping[str, str]]] = {
    "node": {
        "name": "is the quoted name",
        "used": "follows from the pods on the node",
        "free": "follows from `allocatable` and the pods on the node",
        "podCount": "follows from the pods on the node",
        "pods": "follows from the pods on the node",
        "nominated": "follows from the pods nominated to the node",
        "finished": "follows from the pods that ended on the node: give them with `phase` and `finishedAt`",
    },
    "pod": {
        "name": "is the quoted name",
        "qos": "follows from requests and limits",
        "queuedAt": "follows from when the pod is given",
        "attempts": "follows from what happens to the pod",
        "node": 'is given as `given pod "p" on "a"`',
    },
}
"""Fields of the schema that are not given -> why."""


def _given(kind: str, *objects: str, **more: Type) -> dict[str, Type]:
    fields = {field.name: field.type for name in objects for field in OBJECTS[name].fields.values()}
    return {name: type_ for name, type_ in (fields | more).items() if name not in FOLLOWS[kind]}


_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
WORDS: Final[Mapping[tuple[str, str], Sequence[str]]] = {
    ("taint", "effect"): _EFFECTS,
    ("toleration", "effect"): (*_EFFECTS, ""),
    ("toleration", "operator"): ("Equal", "Exists", "Lt", "Gt", ""),
    ("condition", "status"): ("True", "False", "Unknown"),
    ("port", "protocol"): ("TCP", "UDP", "SCTP", ""),
}
"""(object, field) -> what the field may say: other words are refused by the API server, and would mean nothing here."""

NODE_FIELDS: Final[Mapping[str, Type]] = _given("node", "node", spec=RAW, status=RAW)
"""What `given node` takes -> the type of its value."""
POD_FIELDS: Final[Mapping[str, Type]] = _given(
    "pod",
    "pod",
    "clusterPod",
    phase=STRING,
    reason=STRING,
    finishedAt=TIMESTAMP,
    nominatedNode=STRING,
    group=POD_GROUP,
    spec=RAW,
    status=RAW,
)
"""What `given pod` takes -> the type of its value."""
OF_ONE_CONTAINER: Final = ("requests", "limits", "images")
"""What the pod has through its one container; with `containers` they are said there."""


def wrong_value(value: object, type_: Type) -> str | None:
    """What a given value should be, as in "`x` is a list of taints"; None if it is."""
    match type_.kind:
        case Kind.DYN:
            return None
        case Kind.OPTIONAL:
            return wrong_value(value, type_.args[0])
        case Kind.LIST:
            return _wrong_list(value, type_)
        case Kind.MAP:
            return _wrong_map(value, type_)
        case Kind.OBJECT:
            return _wrong_object(value, type_)
        case _:
            return None if _PLAIN.get(type_.kind, _is_amount)(value) else form(type_)


def _wrong_list(value: object, type_: Type) -> str | None:
    if not isinstance(value, list):
        return form(type_)
    return next((f"{form(type_)}, and one of them is {wrong}" for item in value
                 if (wrong := wrong_value(item, type_.args[0]))), None)  # fmt: skip


def _wrong_map(value: object, type_: Type) -> str | None:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        return form(type_)
    wrong = next((key for key, inner in value.items() if wrong_value(inner, type_.args[1]) is not None), None)
    return None if wrong is None else f"{form(type_)}, and `{wrong}` is none: {_unquoted(value[wrong])}"


def _unquoted(value: object) -> str:
    """What to do about a value that is no string."""
    if isinstance(value, bool | int | float):
        return f'write `"{str(value).lower()}"`'
    return "write its value in quotes"


def _wrong_object(value: object, type_: Type) -> str | None:
    if not isinstance(value, dict):
        return form(type_)
    if type_.name in _AMOUNTS:
        wrong = next(filter(None, (wrong_amount(name, amount) for name, amount in value.items())), None)
        return None if wrong is None else f"{form(type_)}; {wrong}"
    known = OBJECTS[type_.name].fields
    for name, inner in value.items():
        if name not in known:
            return f"{form(type_)}, which has {listed(known)}, and no `{name}`"
        if wrong := wrong_value(inner, known[name].type) or _wrong_word(inner, WORDS.get((type_.name, name), ())):
            return f"{form(type_)}, whose `{name}` is {wrong}"
    return None


def _wrong_word(value: object, words: Sequence[str]) -> str | None:
    if not words or value in words:
        return None
    near = closest(str(value), words)
    hint = f"; did you mean `{near}`?" if near else ""
    *others, last = (f"`{word}`" for word in words if word)
    return f"{', '.join(others)} or {last}, not `{value}`{hint}"


def wrong_amount(name: str, amount: object) -> str | None:
    """What is wrong with an amount of a resource: its name, or what is written; None where nothing is."""
    if not ("/" in name.strip("/") or name in _NATIVE or name.startswith(("hugepages-", "attachable-volumes-"))):
        meant = vendors(name) or '"vendor/x"'
        return f"no resource is called `{name}`; one of a vendor has its name: `{meant}`"
    try:
        quantity.parse(amount if isinstance(amount, int | float) else str(amount))
    except quantity.QuantityError as error:
        return f"`{name}`: {error}"
    return None


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_timestamp(value) is not None
    except EvaluationError:
        return False


def _is_amount(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        quantity.parse(value)
    except quantity.QuantityError:
        return False
    return True


def form(type_: Type) -> str:
    """The form of a value in words: `a list of taints`."""
    match type_.kind:
        case Kind.OPTIONAL:
            return form(type_.args[0])
        case Kind.LIST:
            return f"a list of {form(type_.args[0]).split(' ', 1)[1].split(',')[0]}s"
        case Kind.MAP:
            return "a map" if type_.args[1] == DYN else "a map of strings"
        case Kind.OBJECT if type_.name in _AMOUNTS:
            return "a map of amounts, such as `{cpu: 4, memory: 8Gi}`"
        case Kind.TIMESTAMP:
            return "a time, such as `2026-01-05T18:30:00Z`"
        case Kind.DURATION:
            return "a duration, such as `60s`"
        case Kind.CPU | Kind.MEMORY | Kind.STORAGE:
            return "an amount"
        case _:
            return with_article(type_)


_PLAIN: Final[Mapping[Kind, Callable[[object], bool]]] = {
    Kind.BOOL: lambda value: isinstance(value, bool),
    Kind.INT: lambda value: isinstance(value, int) and not isinstance(value, bool),
    Kind.STRING: lambda value: isinstance(value, str),
    Kind.TIMESTAMP: _is_time,
    Kind.DURATION: lambda value: isinstance(value, str) and _DURATION.fullmatch(value) is not None,
}
"""Whether a value is a plain one of a kind; the others are amounts."""
