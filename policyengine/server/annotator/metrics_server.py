"""metrics.k8s.io as a source. It tells the latest use only, so the window's samples are kept here."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping

import msgspec

from policyengine import quantity
from policyengine.cluster.kinds import Kind
from policyengine.cluster.objects import ObjectError, ObjectMeta, Quantities, Wire, decode
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.language.values import EvaluationError, parse_timestamp
from policyengine.server.annotator.source import Measured, MeasuredNode, QueryRefused, Sample, SourceUnreachable

_NANOSECONDS = 1e9
_NANOCORES = 1e9


class NodeMetrics(Wire, frozen=True):
    """metrics.k8s.io/v1beta1 NodeMetrics."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    usage: Quantities = msgspec.field(default_factory=dict)


RESOURCE = Kind("NodeMetrics", "nodes", NodeMetrics, "/apis/metrics.k8s.io/v1beta1")

_Window = deque[Sample]


class MetricsServer:
    """The metrics API of the cluster itself."""

    def __init__(self, client: Client, window: float) -> None:
        """`window` in seconds."""
        self._client = client
        self._window = window
        self._cpu: defaultdict[str, _Window] = defaultdict(deque)
        self._memory: defaultdict[str, _Window] = defaultdict(deque)

    async def measure(self, now: float, nodes: Mapping[str, MeasuredNode]) -> Measured:
        """What was measured since `now` − window, the latest included."""
        problems: list[str] = []
        for metrics in await self._read():
            name = metrics.metadata.name
            if name not in nodes:
                continue
            try:
                self._note(metrics, nodes[name])
            except (quantity.QuantityError, EvaluationError, KeyError) as error:
                problems.append(f"the metrics of node `{name}` cannot be read: {error}")
        for kept in (self._cpu, self._memory):
            _forget(kept, now - self._window, nodes)
        return Measured(
            {name: list(samples) for name, samples in self._cpu.items()},
            {name: list(samples) for name, samples in self._memory.items()},
            problems=tuple(problems),
        )

    async def close(self) -> None:
        """The client belongs to others."""

    def _note(self, metrics: NodeMetrics, node: MeasuredNode) -> None:
        at = parse_timestamp(metrics.timestamp) / _NANOSECONDS
        capacity = node.status.capacity
        cpu = quantity.nanos(capacity["cpu"]) - quantity.nanos(metrics.usage["cpu"])
        memory = quantity.value(capacity["memory"]) - quantity.value(metrics.usage["memory"])
        for kept, free in ((self._cpu, cpu / _NANOCORES), (self._memory, float(memory))):
            samples = kept[metrics.metadata.name]
            if not samples or samples[-1][0] < at:
                samples.append((at, free))

    async def _read(self) -> list[NodeMetrics]:
        try:
            return [decode(NodeMetrics, raw) async for raw in self._client.list_all(RESOURCE)]
        except ConnectionFailed as error:
            raise SourceUnreachable(f"cannot reach the API server: {error}") from None
        except ApiError as error:
            if error.status in (404, 503):
                raise SourceUnreachable("the cluster serves no metrics.k8s.io; is metrics-server running?") from None
            raise QueryRefused(f"metrics.k8s.io: {error.message}") from None
        except ObjectError as error:
            raise QueryRefused(f"metrics.k8s.io: {error}") from None


def _forget(kept: dict[str, _Window], before: float, nodes: Mapping[str, MeasuredNode]) -> None:
    for name in [name for name in kept if name not in nodes]:
        del kept[name]
    for samples in kept.values():
        while samples and samples[0][0] < before:
            samples.popleft()
