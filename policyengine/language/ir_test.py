"""The checked form of a policy's `test` members: steps in order, values as plain data.

The fields of given nodes and pods are named as in the schema; amounts are as Kubernetes writes them (`4`, `"8Gi"`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from policyengine.language.syntax import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Anything a test gives or expects."""

    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenNode(Step):
    """A node stands in the cluster."""

    name: str
    fields: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPod(Step):
    """A pod is created; with `on` it stands there already."""

    name: str
    on: str | None
    fields: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenNow(Step):
    """The wall clock: nanoseconds since 1970."""

    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenParam(Step):
    """A param has another value; as `ir.Const.value`."""

    name: str
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class After(Step):
    """The clock moves on by so many nanoseconds."""

    duration: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectOn(Step):
    """The pod is placed on the node."""

    pod: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectBefore(Step):
    """The pod is popped from the queue before the other."""

    pod: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectRejected(Step):
    """The pod is refused: everywhere or on a node, by any rule or one."""

    pod: str
    node: str | None
    rule: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectWaits(Step):
    """The pod is held by a gang or permit."""

    pod: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test of a policy."""

    __test__ = False  # not one of pytest's

    name: str
    steps: tuple[Step, ...]
    span: Span
