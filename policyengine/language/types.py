"""The types of expressions, and their shapes.

A type says what a value is; a shape says how many there are of it at once: one for the decision (SCALAR), one a
node (NODE), one a pod of the cluster (POD). Vectorising and hoisting fall out of the shape: whatever is SCALAR
is computed once, whatever is NODE is a column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, IntEnum

from msgspec import Struct


class Kind(Enum):
    """The constructors of types; the values are the names a user writes and reads."""

    BOOL = "bool"
    INT = "int"
    DOUBLE = "double"
    STRING = "string"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    CPU = "cpu"
    MEMORY = "memory"
    STORAGE = "storage"
    LIST = "list"
    MAP = "map"
    OPTIONAL = "optional"
    OBJECT = "object"
    """A thing with fields: pod, node, container, … (`Type.name` says which)."""
    NULL = "null_type"
    TYPE = "type"
    BYTES = "bytes"
    UINT = "uint"
    DYN = "dyn"
    """Not known before evaluation: `policyengine.evaluate` only; a policy has none."""
    ERROR = "error"
    """Already reported; silences what follows from it."""

    __hash__ = object.__hash__
    """There is one object of each kind, and types are looked up often: `Enum`'s own hash is a call in Python."""


class Type(Struct, frozen=True):
    """A type: a constructor, its arguments (list: element; map: key, value; optional: content), a name for
    objects and for ints that are names (qos)."""

    kind: Kind
    args: tuple[Type, ...] = ()
    name: str = ""

    def __str__(self) -> str:
        if self.name:
            return self.name
        arguments = f"({', '.join(map(str, self.args))})" if self.args else ""
        return f"{self.kind.value}{arguments}"

    @property
    def is_quantity(self) -> bool:
        """Whether the type has a Kubernetes dimension (cpu, memory, storage)."""
        return self.kind in QUANTITIES

    @property
    def is_number(self) -> bool:
        """Whether the type is int or double."""
        return self.kind in (Kind.INT, Kind.DOUBLE) and not self.name


QUANTITIES = frozenset({Kind.CPU, Kind.MEMORY, Kind.STORAGE})

BOOL = Type(Kind.BOOL)
INT = Type(Kind.INT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
TIMESTAMP = Type(Kind.TIMESTAMP)
DURATION = Type(Kind.DURATION)
CPU = Type(Kind.CPU)
MEMORY = Type(Kind.MEMORY)
STORAGE = Type(Kind.STORAGE)
QOS = Type(Kind.INT, (), "qos")
"""A pod's quality of service: held as an int, its place in `schema.QOS_CLASSES`, and no number to a rule."""
NULL = Type(Kind.NULL)
DYN = Type(Kind.DYN)
ERROR = Type(Kind.ERROR)


def list_of(element: Type) -> Type:
    """`list(T)`."""
    return Type(Kind.LIST, (element,))


def map_of(key: Type, value: Type) -> Type:
    """`map(K, V)`."""
    return Type(Kind.MAP, (key, value))


def optional_of(content: Type) -> Type:
    """`optional(T)`."""
    return Type(Kind.OPTIONAL, (content,))


def content_of(type_: Type) -> Type:
    """What an optional holds; any other type itself."""
    return type_.args[0] if type_.kind is Kind.OPTIONAL else type_


def holds_object(type_: Type) -> bool:
    """Whether a value of the type is a thing with fields, or holds one."""
    return type_.kind is Kind.OBJECT or any(map(holds_object, type_.args))


def object_of(name: str) -> Type:
    """A thing with fields, by its name in the schema."""
    return Type(Kind.OBJECT, (), name)


_WORD = re.compile(r"\w+|[()]")
_PLAIN = {kind.value: Type(kind) for kind in Kind}


def types_in(text: str, known: Mapping[str, Type]) -> list[Type]:
    """The types that a text names, as a user reads them: `list(string)`, `map(string, int), qos`.

    A word is one of the `known`, a kind, or a thing with fields.
    """
    found: list[list[Type]] = [[]]
    for word in _WORD.findall(text):
        if word == "(":
            found.append([])
        elif word == ")":
            arguments = tuple(found.pop())
            found[-1].append(Type(found[-1].pop().kind, arguments))
        else:
            found[-1].append(known.get(word) or _PLAIN.get(word) or object_of(word))
    return found[0]


class Shape(IntEnum):
    """How many values an expression has in one decision. Ordered: a whole takes the largest shape of its parts."""

    SCALAR = 0
    """One: literals, params, everything of the pod being placed, of the cluster, of now."""
    NODE = 1
    """One a node: a column over the rows of the node table."""
    POD = 2
    """One a pod of the cluster: the body of a comprehension over a pods list, grouped by row or domain."""


class Reach(IntEnum):
    """What the value may change with, from least to most; decides what is hoisted and what is kept.

    CONSTANT: literals, params, `policy`. POD: the pod being placed (its signature). CLUSTER: `cluster`, `now`,
    aggregates over all nodes or pods. NODE_FIXED: the Node object. NODE_CHANGING: what stands on the node.
    """

    CONSTANT = 0
    POD = 1
    CLUSTER = 2
    NODE_FIXED = 3
    NODE_CHANGING = 4
