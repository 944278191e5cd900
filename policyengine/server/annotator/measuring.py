"""The two sources: Prometheus, asked by range queries (prometheus.io/docs/prometheus/latest/querying/api), and
metrics.k8s.io, which tells the latest use only, so the window's samples are kept here."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

import aiohttp
import msgspec

from policyengine import quantity
from policyengine.cluster.kinds import Kind
from policyengine.cluster.objects import ObjectError, ObjectMeta, Quantities, Wire, decode
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.language.values import EvaluationError, parse_timestamp
from policyengine.server.annotator.forecasting import DAY, STEP
from policyengine.server.annotator.measurement import (
    CLOCKS_APART,
    Measured,
    MeasuredNode,
    Naming,
    QueryRefused,
    Sample,
    Samples,
    SourceUnreachable,
    by_instance,
    named,
)

QUERIES: Mapping[str, str] = {
    "cpu": 'sum by (instance, node) (rate(node_cpu_seconds_total{mode="idle"}[2m]))',
    "memory": "node_memory_MemAvailable_bytes",
}
"""PromQL by what is measured, unless told otherwise; each gives one series a node."""
SECONDS = 30.0
"""One query may take so long."""
MOST = 256 << 20
"""Bytes of an answer: 5,000 nodes with a sample each 30 s of a day have 200 MB."""
_SHOWN = 300


class _Series(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct, rename="camel"):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


_answer = msgspec.json.Decoder(_Answer).decode
_matrix = msgspec.json.Decoder(list[_Series]).decode
_Labelled = tuple[dict[str, str], list[Sample]]
"""The labels of a series, and its samples."""


class Prometheus:
    """One server. Make it inside a running event loop."""

    def __init__(
        self,
        url: str,
        queries: Mapping[str, str],
        naming: Naming,
        window: float,
        step: float,
        token: str = "",
        with_day: bool = False,
    ) -> None:
        """`queries` as `QUERIES`; `window` and `step` in seconds; `token` is sent as a bearer token; `with_day`: to ask
        for the last day, too."""
        self._with_day = with_day
        self._url = url.rstrip("/")
        self._queries = queries
        self._naming = naming
        self._window, self._step = window, step
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=SECONDS),
            headers={"Authorization": f"Bearer {token}"} if token else None,
        )

    async def measure(self, now: float, nodes: Mapping[str, MeasuredNode]) -> Measured:
        """The window's samples; instances that are no node of the cluster are left out."""
        known = by_instance(nodes.values())
        problems: list[str] = []
        windows, days = dict[str, Samples](), dict[str, Samples]()
        for what, query in self._queries.items():
            asked = await self._ask(query, now, self._window, self._step)
            windows[what] = self._by_node(query, asked, known, problems)
        for what in ("cpu", "memory") if self._with_day else ():
            query = self._queries[what]
            days[what] = self._by_node(query, await self._ask(query, now, DAY, STEP), known, problems)
        return Measured(windows, days, tuple(dict.fromkeys(problems)))

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def _ask(self, query: str, now: float, window: float, step: float) -> list[_Labelled]:
        asked = {"query": query, "start": f"{now - window:.3f}", "end": f"{now:.3f}", "step": f"{step:g}"}
        try:
            async with self._session.post(f"{self._url}/api/v1/query_range", data=asked) as response:
                raw, status = await _whole(response, query), response.status
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            why = str(error) or f"no answer within {SECONDS:g} s"
            raise SourceUnreachable(f"cannot reach Prometheus `{self._url}`: {why}") from None
        return self._series(query, status, raw)

    def _series(self, query: str, status: int, raw: bytes) -> list[_Labelled]:
        try:
            answer = _answer(raw)
            if answer.status != "success":
                raise QueryRefused(f"Prometheus refuses the query `{query}`: {answer.error}")
            if answer.data.result_type != "matrix":
                raise QueryRefused(f"the query `{query}` gives a {answer.data.result_type}, not a series a node")
            found = _matrix(answer.data.result)
            return [(one.metric, [(at, float(value)) for at, value in one.values]) for one in found]
        except (msgspec.MsgspecError, ValueError):
            shown = " ".join(raw[:_SHOWN].decode("utf-8", "replace").split())
            if status in (401, 403):
                raise QueryRefused(f"Prometheus `{self._url}` refuses us ({status}): {shown}") from None
            raise SourceUnreachable(f"`{self._url}` does not answer as Prometheus ({status}): {shown}") from None

    def _by_node(
        self, query: str, series: Sequence[_Labelled], known: Mapping[str, str], problems: list[str]
    ) -> dict[str, list[Sample]]:
        found: dict[str, list[Sample]] = {}
        several: set[str] = set()
        for labels, samples in series:
            node = known.get(self._naming.instance(labels))
            if node is not None and found.setdefault(node, samples) is not samples:
                several.add(node)
        if several:
            problems.append(f"the query `{query}` gives {named(several)} more than one series; the first one counts")
        if series and not found:
            shown = self._naming.instance(series[0][0])
            problems.append(f"the query `{query}` gives no series of a node; `{shown}` is the name or address of none")
        return found


async def _whole(response: aiohttp.ClientResponse, query: str) -> bytes:
    """The body. Raises `QueryRefused` for one that is too long."""
    found = bytearray()
    async for piece in response.content.iter_chunked(1 << 20):
        found += piece
        if len(found) > MOST:
            raise QueryRefused(f"the query `{query}` gives more than {MOST >> 20} MiB: have it give one series a node")
    return bytes(found)


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

    def __init__(self, client: Client, window: float, with_day: bool = False) -> None:
        """`window` in seconds; `with_day`: whether the samples of the last day are kept too."""
        self._client = client
        self._window = window
        self._with_day = with_day
        self._kept: dict[str, defaultdict[str, _Window]] = {"cpu": defaultdict(deque), "memory": defaultdict(deque)}

    async def measure(self, now: float, nodes: Mapping[str, MeasuredNode]) -> Measured:
        """What was measured since `now` − window, the latest included."""
        unread: dict[str, str] = {}
        for metrics in await self._read():
            name = metrics.metadata.name
            if name not in nodes:
                continue
            try:
                self._note(metrics, nodes[name], now)
            except (quantity.QuantityError, EvaluationError, KeyError) as error:
                unread[name] = str(error)
        problems = [f"the metrics of {named(unread)} cannot be read: {unread[min(unread)]}"] if unread else []
        for kept in self._kept.values():
            _forget(kept, now - max(self._window, DAY if self._with_day else 0.0), nodes)
        windows, days = self._since(now - self._window), self._since(0.0) if self._with_day else {}
        return Measured(windows, days, tuple(problems))

    def _since(self, start: float) -> dict[str, Samples]:
        """What is kept, from a moment on."""
        return {
            what: {name: [one for one in samples if one[0] >= start] for name, samples in kept.items()}
            for what, kept in self._kept.items()
        }

    async def close(self) -> None:
        """The client belongs to others."""

    def _note(self, metrics: NodeMetrics, node: MeasuredNode, now: float) -> None:
        at = parse_timestamp(metrics.timestamp) / _NANOSECONDS
        if at > now + CLOCKS_APART:
            raise EvaluationError(f"they are of {metrics.timestamp}, which is to come")
        capacity = node.status.capacity
        cpu = quantity.nanos(capacity["cpu"]) - quantity.nanos(metrics.usage["cpu"])
        memory = quantity.value(capacity["memory"]) - quantity.value(metrics.usage["memory"])
        for what, free in (("cpu", cpu / _NANOCORES), ("memory", float(memory))):
            samples = self._kept[what][metrics.metadata.name]
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
