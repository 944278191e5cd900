"""Requests are counted as client-go counts them."""

from typing import Any

from policyengine.kube.http.client import ConnectionFailed, Response
from policyengine.server.metrics.observed_client import ObservedTransport
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics


class Answering:
    """Answers with one status; fails without one."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.headers: dict[str, str] = {}

    async def request(self, method: str, path: str, **how: Any) -> Response:
        if not self.status:
            raise ConnectionFailed("refused", sent=False)
        return self  # type: ignore[return-value]  # as much of an answer as is looked at


async def test_requests_count_by_code_method_and_host_and_watches_are_not_timed() -> None:
    metrics = SchedulerMetrics()
    for status, method, timeout in ((201, "POST", 1.0), (409, "POST", 1.0), (200, "GET", None), (0, "GET", 1.0)):
        transport = ObservedTransport(Answering(status), "https://[::1]:6443/prefix", metrics)  # type: ignore[arg-type]
        try:
            await transport.request(method, "/api/v1/nodes", timeout=timeout)
        except ConnectionFailed:
            assert not status
    host = "[::1]:6443"
    counted = {("201", "POST", host): 1, ("409", "POST", host): 1, ("200", "GET", host): 1, ("<error>", "GET", host): 1}
    assert metrics.rest_requests.values == counted
    assert (metrics.rest_duration.count(("POST", host)), metrics.rest_duration.count(("GET", host))) == (2, 1)
