"""What happened in a simulation, counted as it happens: pods, nodes, load and queue over time.

It counts from the objects themselves and from who was bound where, not from the scheduler's own view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policyengine import quantity
from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.pod_shape import PodShape

Amounts = dict[str, int]
"""Resource -> millicores for cpu, else whole units; `pods` counts pods."""


@dataclass(slots=True)
class PodRecord:
    """One pod's way. Times are seconds from the start."""

    name: str
    """`namespace/name`."""
    uid: str
    template: str
    created: float
    asks: Amounts
    gang: str = ""
    priority: int = 0
    attempts: int = 0
    refused_by: tuple[str, ...] = ()
    """Who refused it last."""
    told: str = ""
    """What was last said of why it waits."""
    bound: float | None = None
    node: str = ""
    order: int = -1
    """Its number among the bindings."""
    ended: float | None = None
    how: str = ""
    """`finished`, `preempted`, `deleted`, `drained`, `lost` with its node; "" while it is there."""

    @property
    def waited(self) -> float | None:
        """Seconds from creation to binding; None where it was not bound."""
        return None if self.bound is None else self.bound - self.created

    @property
    def state(self) -> str:
        """`pending`, `running`, or how it ended."""
        return self.how or ("pending" if self.bound is None else "running")


@dataclass(slots=True)
class NodeRecord:
    """One node: what it offers, what is used of it, and the most that was."""

    name: str
    came: float
    room: Amounts
    used: Counter[str] = field(default_factory=Counter)
    peak: Amounts = field(default_factory=dict)
    peak_share: float = 0.0
    """The largest share of any resource that was used at one time."""
    pods: int = 0
    """How many pods were bound to it in all."""
    gone: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster from this moment on, until the next sample."""

    at: float
    pending: int
    running: int
    used: Mapping[str, int]
    room: Mapping[str, int]

    def share(self, resource: str) -> float:
        """Used of what there is; 0 where there is none."""
        room = self.room.get(resource, 0)
        return self.used.get(resource, 0) / room if room else 0.0


@dataclass(frozen=True, slots=True)
class Overcommitment:
    """A binding that raised a node over what it offers."""

    at: float
    pod: str
    node: str
    resource: str
    used: int
    room: int


class Ledger:
    """Everything that is known of a run."""

    def __init__(self) -> None:
        self.pods: dict[str, PodRecord] = {}
        """By UID, in the order of creation."""
        self.nodes: dict[str, NodeRecord] = {}
        self.samples: list[Sample] = []
        self.overcommitted: list[Overcommitment] = []
        self.gang_minimum: dict[str, int] = {}
        self.gang_bound: dict[str, int] = {}
        """Gang -> how many of its members were bound at some time."""
        self.partial: dict[str, float] = {}
        """Gang -> when it first stood there in part at the end of a moment."""
        self.pending = 0
        self.running = 0
        self.preempted = 0
        self._used: Counter[str] = Counter()
        self._room: Counter[str] = Counter()
        self._bindings = 0
        self._touched: set[str] = set()

    # --- pods -----------------------------------------------------------------------------------------

    def created(self, pod: Pod, shape: PodShape, template: str, at: float, gang: str, minimum: int) -> None:
        """A pod came. `shape`: the pod's own."""
        asks = {**dict(shape.amounts), "pods": 1}
        about = pod.metadata
        record = PodRecord(about.key, about.uid, template, at, asks, gang, pod.spec.priority or 0)
        self.pods[record.uid] = record
        self.pending += 1
        if gang:
            self.gang_minimum[gang] = minimum
            self.gang_bound.setdefault(gang, 0)

    def bound(self, uid: str, node: str, at: float) -> None:
        """A pod was bound."""
        record = self.pods[uid]
        record.bound, record.node, record.order = at, node, self._bindings
        self._bindings += 1
        self.pending -= 1
        self.running += 1
        if record.gang:
            self.gang_bound[record.gang] += 1
            self._touched.add(record.gang)
        self._take(record, self.nodes[node], at)

    def _take(self, record: PodRecord, node: NodeRecord, at: float) -> None:
        node.pods += 1
        node.used.update(record.asks)
        self._used.update(record.asks)
        for name in record.asks:
            used, room = node.used[name], node.room.get(name, 0)
            if used > room:
                self.overcommitted.append(Overcommitment(at, record.name, node.name, name, used, room))
            if used > node.peak.get(name, 0):
                node.peak[name] = used
                node.peak_share = max(node.peak_share, used / room if room else 1.0)

    def ended(self, uid: str, how: str, at: float) -> None:
        """A pod finished, or is gone."""
        record = self.pods[uid]
        record.ended, record.how = at, how
        self.preempted += how == "preempted"
        if record.bound is None:
            self.pending -= 1
        else:
            self.running -= 1
            self.nodes[record.node].used.subtract(record.asks)
            self._used.subtract(record.asks)

    # --- nodes ----------------------------------------------------------------------------------------

    def node_seen(self, node: Node, at: float) -> None:
        """A node came, came back, or changed."""
        name, room = node.metadata.name, _room(node)
        record = self.nodes.get(name)
        if record is None:
            record = self.nodes[name] = NodeRecord(name, at, {})
        self._change_room(record, room)
        record.gone = None

    def node_gone(self, name: str, at: float) -> None:
        """A node is gone, its pods before it."""
        self._change_room(self.nodes[name], {})
        self.nodes[name].gone = at

    def _change_room(self, record: NodeRecord, room: Amounts) -> None:
        self._room.update(room)
        self._room.subtract(record.room)
        record.room = room

    # --- moments --------------------------------------------------------------------------------------

    def moment_over(self, at: float) -> None:
        """Everything that happens at this moment has happened."""
        for gang in self._touched:
            if self.gang_bound[gang] < self.gang_minimum[gang]:
                self.partial.setdefault(gang, at)
        self._touched.clear()
        last = self.samples[-1] if self.samples else None
        now = (self.pending, self.running, self._used, self._room)
        if last is not None and (last.pending, last.running, last.used, last.room) == now:
            return
        if last is not None and last.at == at:
            self.samples.pop()
        room = dict(self._room) if last is None or last.room != self._room else last.room
        self.samples.append(Sample(at, self.pending, self.running, dict(self._used), room))


def _room(node: Node) -> Amounts:
    offered = node.status.allocatable if node.status.allocatable is not None else node.status.capacity
    return {name: quantity.amount(name, amount) for name, amount in offered.items()}


# --- figures ------------------------------------------------------------------------------------------


def percentile(ordered: Sequence[float], which: str) -> float:
    """`mean`, `max` or `pN` (nearest rank: the least value that N % do not exceed) of values in order; 0 of none."""
    if not ordered:
        return 0.0
    if which == "mean":
        return sum(ordered) / len(ordered)
    if which == "max":
        return ordered[-1]
    rank = -(-int(which[1:]) * len(ordered) // 100)
    return ordered[max(rank, 1) - 1]


def stretches(samples: Sequence[Sample], end: float) -> Iterator[tuple[Sample, float]]:
    """Each sample, and until when it holds."""
    return zip(samples, (*(sample.at for sample in samples[1:]), end), strict=False)


def mean_share(samples: Sequence[Sample], resource: str, start: float, end: float) -> float:
    """The share of a resource that was used between two times, in the mean over time."""
    total = 0.0
    for sample, until in stretches(samples, end):
        total += sample.share(resource) * max(0.0, min(until, end) - max(sample.at, start))
    return total / (end - start) if end > start else 0.0


def mean_room(samples: Sequence[Sample], end: float) -> dict[str, float]:
    """What there was of each resource, in the mean over time."""
    total: dict[str, float] = {}
    for sample, until in stretches(samples, end):
        for name, room in sample.room.items():
            total[name] = total.get(name, 0.0) + room * (until - sample.at)
    return {name: amount / end for name, amount in total.items()} if end > 0.0 else {}


def clock(seconds: float) -> str:
    """A time or duration: `1d 2h`, `3h 20min`, `2min 5s`, `4.25s`, `0s`."""
    if seconds < 60.0:
        return f"{round(seconds, 2):g}s"
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole % 86400 // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s")]
    first = next(index for index, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number}{unit}" for number, unit in parts[first : first + 2] if number)


def thinned(samples: Sequence[Sample], end: float, width: int) -> list[list[Sample]]:
    """The samples that hold in each of so many equal stretches of time; each stretch has one at least."""
    stretches: list[list[Sample]] = []
    at = 0
    for number in range(width):
        until = end * (number + 1) / width
        first = at
        while at + 1 < len(samples) and samples[at + 1].at < until:
            at += 1
        stretches.append(list(samples[first : at + 1]))
    return stretches
