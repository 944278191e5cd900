"""metrics.k8s.io as metrics-server answers, at a server that stands in for it: the bodies have the shape of its API
(k8s.io/metrics, v1beta1), with its units. A real metrics-server never ran here."""

from typing import Any

import pytest

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Client, Response
from policyengine.server.annotator.measurement import MeasuredNode, QueryRefused, SourceUnreachable
from policyengine.server.annotator.measuring import MetricsServer
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http_requests import json_response
from policyengine.simulator.api_server.memory import MemoryResponse, MemoryTransport
from tests.server.annotator.world import node

START = 1_800_000_000.0
PATH = "/apis/metrics.k8s.io/v1beta1/nodes"


def measured(name: str, cpu: str, memory: str, at: str = "2027-01-15T08:00:00Z") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "creationTimestamp": at, "labels": {"kubernetes.io/hostname": name}},
        "timestamp": at,
        "window": "20.048s",
        "usage": {"cpu": cpu, "memory": memory},
    }


def page(*items: dict[str, Any], after: str = "") -> dict[str, Any]:
    return {
        "kind": "NodeMetricsList",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"continue": after} if after else {},
        "items": list(items),
    }


class Aggregated(MemoryTransport):
    """An API server behind which another serves metrics.k8s.io."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        super().__init__(ApiServer(SystemClock()))
        self.answers = list(answers)
        self.asked: list[dict[str, str]] = []

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if path != PATH:
            return await super().request(method, path, **more)
        self.asked.append(dict(more.get("query") or {}))
        return MemoryResponse(json_response(*self.answers.pop(0)))


async def free(*answers: tuple[int, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Cores and bytes that are free on nodes of 4 cores and 8Gi."""
    nodes: dict[str, MeasuredNode] = {name: node(name) for name in ("a", "b")}
    found = await MetricsServer(Client(Aggregated(*answers)), 60.0).measure(START, nodes)
    assert found.problems == ()
    cpu, memory = ({name: samples[-1][1] for name, samples in kind.items()} for kind in found.windows.values())
    return cpu, memory


async def test_nanocores_and_kibibytes_are_read_as_metrics_server_writes_them() -> None:
    cpu, memory = await free((200, page(measured("a", "145206421n", "1212736Ki"), measured("b", "2", "3Gi"))))
    assert cpu == {"a": pytest.approx(3.854793579), "b": 2.0}
    assert memory == {"a": 8 * 2**30 - 1212736 * 1024, "b": 5 * 2**30}


async def test_pages_are_followed_to_the_last_and_nodes_that_are_gone_left_out() -> None:
    first, last = page(measured("a", "1", "1Gi"), after="more"), page(measured("gone", "1", "1Gi"))
    transport = Aggregated((200, first), (200, last))
    found = await MetricsServer(Client(transport), 60.0).measure(START, {"a": node("a")})
    assert list(found.windows["cpu"]) == ["a"]
    assert [query.get("continue", "") for query in transport.asked] == ["", "more"]


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (503, "ServiceUnavailable", SourceUnreachable),
        (404, "NotFound", SourceUnreachable),
        (403, "Forbidden", QueryRefused),
    ],
)
async def test_what_is_answered_while_metrics_server_is_away_or_refuses(
    status: int, reason: str, error: type[Exception]
) -> None:
    body = {"kind": "Status", "status": "Failure", "message": "the server is unable", "reason": reason, "code": status}
    with pytest.raises(error):
        await free((status, body))


async def test_a_measurement_of_the_future_is_told_and_does_not_stand_in_the_way_of_later_ones() -> None:
    ahead, now = measured("a", "1", "1Gi", "2127-01-15T08:00:00Z"), measured("a", "2", "1Gi")
    also = measured("b", "1", "1Gi", "2127-01-15T08:00:00Z")
    source = MetricsServer(Client(Aggregated((200, page(ahead, also)), (200, page(now)))), window=120.0)
    nodes: dict[str, MeasuredNode] = {name: node(name) for name in ("a", "b")}
    found = await source.measure(START, nodes)
    told = "the metrics of node `a` and others cannot be read: they are of 2127-01-15T08:00:00Z, which is to come"
    assert found.problems == (told,) and found.windows["cpu"] == {}
    assert (await source.measure(START, nodes)).windows["cpu"] == {"a": [(START, 2.0)]}


async def test_the_latest_is_told_and_the_window_is_kept_here() -> None:
    early, late = measured("a", "250m", "2Gi"), measured("a", "1500000000n", "3Gi", "2027-01-15T08:01:00Z")
    pages = [page(early, measured("other", "", "", "")), page(early), page(late), page(late)]
    pages += [page(measured("a", "1", "1Gi", "then"))] * 2
    source = MetricsServer(Client(Aggregated(*((200, one) for one in pages))), window=120.0)
    nodes: dict[str, MeasuredNode] = {"a": node("a")}
    await source.measure(START, nodes)
    await source.measure(START + 10, nodes)
    found = await source.measure(START + 60, nodes)
    assert found.windows["cpu"] == {"a": [(START, 3.75), (START + 60, 2.5)]}
    assert found.windows["memory"] == {"a": [(START, 6.0 * 2**30), (START + 60, 5.0 * 2**30)]}
    assert (await source.measure(START + 150, nodes)).windows["cpu"] == {"a": [(START + 60, 2.5)]}
    assert "metrics of node `a` cannot be read" in (await source.measure(START + 150, nodes)).problems[0]
    assert (await source.measure(START + 150, {})).windows["cpu"] == {}
