"""The embedded API server in a process of its own: says its URL, serves until its standard input ends.

Argument: {"cpu": the core to stay on, "workload": NAME, "nodes": N, "pods": N}, all of it optional. With a workload its
nodes and waiting pods are there from the start, made as any client would make them.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from benchmarks.processes import say, stdin_closed
from policyengine.clock import SystemClock
from policyengine.kube.config import process
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http import serve
from policyengine.simulator.api_server.http_requests import Request


async def main(argument: dict[str, Any]) -> None:
    """Serve."""
    if argument.get("cpu") is not None:
        os.sched_setaffinity(0, {argument["cpu"]})
    api = ApiServer(SystemClock())
    site = await serve(api)
    if argument.get("workload"):
        await _fill(api, argument)
    say({"url": site.url, "host": site.host, "port": site.port, "version": api.store.revision})
    await stdin_closed()
    await site.stop()


async def _fill(api: ApiServer, argument: dict[str, Any]) -> None:
    from benchmarks.scheduler_perf import WORKLOADS
    from benchmarks.workloads import NAMESPACE

    workload = WORKLOADS[argument["workload"]].sized(argument["nodes"], argument["pods"])
    await _create(api, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for node in workload.node_objects():
        await _create(api, "/api/v1/nodes", node)
    for pod in workload.pod_objects("default-scheduler"):
        await _create(api, f"/api/v1/namespaces/{NAMESPACE}/pods", pod)


async def _create(api: ApiServer, path: str, body: dict[str, Any]) -> None:
    headers = {"content-type": "application/json", "user-agent": "bench"}
    answer = await api.handle(Request("POST", path, {}, headers, json.dumps(body).encode()))
    assert answer.status == 201, answer.body


if __name__ == "__main__":
    process.run(main(json.loads(sys.argv[1])))
