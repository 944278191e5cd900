"""What a policy may be written of: literals by type, what can be read of roots and things, functions by result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from policyengine.language.functions import FUNCTIONS, Overload
from policyengine.language.functions.table import unify
from policyengine.language.schema import CLUSTER_POD, NODE, ROOTS, object_info
from policyengine.language.types import Kind, Type, list_of, optional_of

NUMBERS = ("int", "double")
MEETING = ("cpu", "memory", "storage", "double")
"""Types that a bare literal takes from what it meets."""
SCALED = ("cpu", "memory", "storage", "duration")
COMPARABLE = (*NUMBERS, *SCALED, "timestamp")
SCALARS = ("bool", "string", *COMPARABLE)
SCALAR_TYPES = [Type(Kind(name)) for name in SCALARS]
LABELS = ('"app"', '"tier"', '"topology.kubernetes.io/zone"')
GPU = '"nvidia.com/gpu"'
CLUSTER_LISTS = (list_of(CLUSTER_POD), list_of(NODE))
LITERALS: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false"),
    "int": ("0", "1", "2", "3", "7", "100", "(-1)", "2147483648", "9223372036854775807", "(-9223372036854775807 - 1)"),
    "double": ("0.0", "1.0", "(-1.5)", "0.1", "0.5", "2.5", "1e9", "1e308", "(1.0 / 0.0)", "(0.0 / 0.0)"),
    "string": ('""', '"a"', '"b"', '"zone-a"', "'Zone-B'", 'r"node9"', '"10"', '"-7"', '"2.5"', '"""x y"""', '"É"'),
    "cpu": ("1m", "250m", "1000m", "4000m"),
    "memory": ("1Ki", "1Gi", "1.5Gi", "1048576Gi"),
    "duration": ("0s", "90s", "(-1h)", "250ms", "2d", "1.5min"),
    "timestamp": ("timestamp('2027-01-15T07:00:01Z')", 'timestamp("1999-12-31T23:59:59.5-05:00")'),
}
WORDS = ("", "a", "10", "2.5", "1h30m", "-0.5s", "1.5Gi", "100m", "3e2", "true", "2026-02-28T23:59:59+01:00", "nan")
PATTERNS = ('"^a"', '"[0-9]+$"', 'r"\\d"', '"zone|b"')
ZONES = ('"Europe/Berlin"', '"UTC"', '"-05:30"', '"America/New_York"')
BARE = {
    "cpu": (("4", "4000m"), ("0.5", "500m"), ("2k", "2000000m"), ("0", "0m")),
    "memory": (("1G", "976562.5Ki"), ("1024", "1Ki"), ("0", "0Ki"), ("3000000000", "2929687.5Ki")),
    "storage": (("1G", "976562.5Ki"), ("1024", "1Ki"), ("0", "0Ki")),
    "double": (("3", "3.0"), ("0x10", "16.0"), (".5", "0.5"), ("1E+2", "100.0")),
    "qos": (('"Burstable"', "'Burstable'"), ('"Guaranteed"', '"Guaranteed"')),
}
"""A literal as it is written where it meets a type, and with the type written out."""
ROUGH = ("exp", "ln", "pow", "betaCdf")
"""Functions whose last bits are the machine's: their answers are rounded before they are compared."""


@dataclass(frozen=True)
class Where:
    """What may be read at a place: roots of the schema, and the variables around it with their types."""

    roots: frozenset[str]
    variables: tuple[tuple[str, Type], ...] = ()
    is_rule: bool = True
    """Whether `random()` may be written: in a let it is another one than in a rule."""

    def with_(self, name: str, type_: Type) -> Where:
        return replace(self, variables=(*self.variables, (name, type_)))

    def without_nodes(self) -> Where:
        """For elements of lists of all nodes or pods: what differs from node to node is not compared with each."""
        kept = tuple((name, type_) for name, type_ in self.variables if type_ not in (NODE, CLUSTER_POD))
        return replace(self, roots=self.roots - {"node"}, variables=kept)


POD_ONLY = Where(frozenset({"pod", "podGroup"}))
RUNNING = Where(frozenset({"running"}))
EVERY_POD = Where(frozenset({"pod", "waiting", "podGroup", "gang", "cluster", "policy", "now", "all"}))
EVERYTHING = replace(EVERY_POD, roots=EVERY_POD.roots | {"node"})
VICTIM = Where(frozenset({"pod", "waiting", "podGroup", "now", "victim"}))


@dataclass(frozen=True)
class Named:
    """A param, let or function: how it is written, in its own block too, what it means, and what it reads."""

    call: str
    own: str
    type: Type
    body: str
    needs: frozenset[str] = frozenset()
    parameters: tuple[tuple[str, Type], ...] = ()


@cache
def reachable(name: str) -> tuple[tuple[str, Type], ...]:
    """Everything that can be read of a thing, `@` in the place of its name: (text, type)."""
    return tuple(_reachable("@", Type(Kind.OBJECT, (), name), False))


def _reachable(text: str, type_: Type, absent: bool) -> Iterator[tuple[str, Type]]:
    info = object_info(type_)
    assert info is not None
    for field in info.fields.values():
        maybe = absent or field.optional
        inner = field.type.args[0] if field.type.kind is Kind.OPTIONAL else field.type
        path = f"{text}.{'?' if maybe else ''}{field.name}"
        is_optional = maybe or field.type.kind is Kind.OPTIONAL
        if inner.kind is Kind.OBJECT:
            yield from _reachable(path, inner, is_optional)
        else:
            yield path, optional_of(inner) if is_optional else inner
    if info.entries is not None:
        yield f"{text}[?{GPU}]", optional_of(info.entries)


def _readable(roots: frozenset[str]) -> Iterator[tuple[str, Type]]:
    """What can be read of roots."""
    for root in sorted(roots & (ROOTS.keys() | {"running", "waiting", "all"})):
        if root == "waiting":
            yield from ((f"pod.{name}", object_info(ROOTS["pod"].type).fields[name].type) for name in WAITING)
        elif root == "all":
            yield from ((name, ROOTS[name].type) for name in ("nodes", "pods"))
        elif root == "running":
            yield from _of_root("pod", "pod")
        else:
            yield from _of_root(root, root)
    if "node" in roots:
        for label in LABELS:
            yield from (
                (f"node.domain({label}).{name}", type_)
                for name, type_ in zip(("pods", "nodes"), CLUSTER_LISTS, strict=True)
            )


WAITING = ("queuedAt", "attempts")


def _of_root(root: str, text: str) -> Iterator[tuple[str, Type]]:
    type_ = ROOTS[root].type
    absent = type_.kind is Kind.OPTIONAL
    inner = type_.args[0] if absent else type_
    if inner.kind is not Kind.OBJECT:
        yield text, type_
        return
    found = reachable(inner.name) if not absent else tuple(_reachable("@", inner, True))
    for path, of in found:
        if not (root == "pod" and path[2:] in WAITING):
            yield path.replace("@", text, 1), of


@cache
def readable(roots: frozenset[str]) -> dict[Type, list[str]]:
    found: dict[Type, list[str]] = {}
    for text, type_ in _readable(roots):
        found.setdefault(type_, []).append(text)
    return found


@cache
def makers(wanted: Type) -> list[tuple[str, list[tuple[Overload, dict[str, Type]]]]]:
    """The functions that can answer a type, by name: overloads and what their type variables stand for."""
    found: dict[str, list[tuple[Overload, dict[str, Type]]]] = {}
    for name, function in FUNCTIONS.items():
        for overload in function.overloads if not function.is_dynamic else ():
            variables: dict[str, Type] = {}
            if not overload.dynamic and unify(overload.result, wanted, variables) and name != "optional.none":
                found.setdefault(name, []).append((overload, variables))
    return list(found.items())


def stands_for(actual: Type, wanted: Type) -> bool:
    return actual == wanted or {actual.name, wanted.name} == {"pod", "clusterPod"}


def used_roots(plain: str) -> frozenset[str]:
    """The roots that a text reads."""
    plain = re.sub(r'"[^"]*"', '""', plain)
    words = set(re.findall(r"(?<![.\w])(\w+)\b", plain))
    found = {root for root in ROOTS if root in words}
    if words & {"nodes", "pods"}:
        found |= {"all"}
    if re.search(r"(?<![.\w])pod\.(queuedAt|attempts)", plain):
        found |= {"waiting"}
    return frozenset(found)
