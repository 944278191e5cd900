"""The checked form of a policy's `test` members: steps in order, values as plain data.

The fields of given nodes and pods are named as in the schema; amounts are as Kubernetes writes them (`4`, `"8Gi"`).
"""

from __future__ import annotations

from msgspec import Struct, field

from policyengine.language.ir import Expr
from policyengine.language.syntax import Span


class Step(Struct, frozen=True, kw_only=True):
    """Anything a test gives or expects."""

    span: Span


class GivenNode(Step, frozen=True, kw_only=True):
    """A node stands in the cluster."""

    name: str
    fields: dict[str, object] = field(default_factory=dict)


class GivenPod(Step, frozen=True, kw_only=True):
    """A pod is created; with `on` it stands there already."""

    name: str
    on: str | None
    fields: dict[str, object] = field(default_factory=dict)


class GivenNow(Step, frozen=True, kw_only=True):
    """The wall clock: nanoseconds since 1970."""

    now: int


class GivenParam(Step, frozen=True, kw_only=True):
    """A param has another value; as `ir.Const.value`."""

    name: str
    value: object


class After(Step, frozen=True, kw_only=True):
    """The clock moves on by so many nanoseconds."""

    duration: int


class ExpectOn(Step, frozen=True, kw_only=True):
    """The pod is placed on the node."""

    pod: str
    node: str


class ExpectBefore(Step, frozen=True, kw_only=True):
    """The pod is popped from the queue before the other."""

    pod: str
    other: str


class ExpectRejected(Step, frozen=True, kw_only=True):
    """The pod is refused: everywhere or on a node, by any rule or one, with a reason that contains a text."""

    pod: str
    node: str | None
    rule: str | None
    reason: str | None = None


class ExpectWaits(Step, frozen=True, kw_only=True):
    """The pod is held by a gang or permit."""

    pod: str


class ExpectThat(Step, frozen=True, kw_only=True):
    """The condition holds; it asks about pods by name (`checking.test_checks`)."""

    condition: Expr


class ExpectNumber(Step, frozen=True, kw_only=True):
    """A rule's score of a node (before its weight) or, without a rule, the node's total is within bounds."""

    pod: str
    node: str
    rule: str | None
    least: int
    most: int


class ExpectGang(Step, frozen=True, kw_only=True):
    """A gang has so many members (None: any number): in all, bound, not bound."""

    key: str
    size: int | None = None
    bound: int | None = None
    waiting: int | None = None


class Test(Struct, frozen=True, kw_only=True):
    """A test of a policy."""

    __test__ = False  # not one of pytest's

    name: str
    steps: tuple[Step, ...]
    span: Span
    file: str = ""
    """The file of the overlay it is written in, '' for the policy's own."""

    @property
    def expectations(self) -> tuple[Step, ...]:
        """The steps that expect something, in order."""
        return tuple(step for step in self.steps if not isinstance(step, GIVEN))


GIVEN = (GivenNode, GivenPod, GivenNow, GivenParam, After)
"""The steps that expect nothing."""


def vacuous(test: Test) -> str | None:
    """Why a test proves nothing, None where it may fail."""
    if not test.expectations:
        return "the test expects nothing"
    if not any(isinstance(step, GivenPod) and step.on is None for step in test.steps):
        return "the test gives no pod to be placed, so nothing happens in it"
    started = False
    pods: dict[str, str | None] = {}
    for step in test.steps:
        if isinstance(step, GivenPod):
            pods[step.name] = step.on
            started |= step.on is None
        elif isinstance(step, ExpectOn) and not started and pods.get(step.pod) == step.node:
            return f"`{step.pod}` was given on `{step.node}` and nothing has happened yet: the expectation cannot fail"
    return None
