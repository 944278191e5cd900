"""What a real kube-scheduler 1.36.2 sent to an extender, a cluster with the nodes it sent, and an extender to ask."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import msgspec

from policyengine.clock import SystemClock
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.policy_compiler import compile_policy
from policyengine.server.extender.app import serve
from policyengine.server.extender.known_cluster import ExtenderCluster
from policyengine.server.extender.policy_rules import PolicyRules
from policyengine.server.extender.verbs import Verbs
from tests.shared_facts import shared

POLICY = """policy "calm" {
  base none
  let congestion = toInt(node.annotations[?"congestion-factor"]).orValue(0)
  filter "quiet" { require congestion < 80 else "congestion {congestion}" }
  score "calm" weight 2 = clamp(100 - congestion, 0, 100)
  score "flat" weight 1 = 50
}"""


class At:
    """A clock that stands still."""

    def now(self) -> float:
        return 1_760_000_000.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")


class Known(ExtenderCluster):
    """A cluster that was read already."""

    is_watched = True

    def __init__(self, nodes: Sequence[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__()
        for node in nodes:
            self.view.add_or_update_node(decode(Node, node))
        for pod in pods:
            self.view.add_or_update_pod(decode(Pod, pod))

    def take(self, sent: list[msgspec.Raw]) -> Mapping[str, msgspec.Raw]:
        raise AssertionError("names only")


@cache
def exchanges(which: str) -> list[dict[str, Any]]:
    """The recorded requests and answers: `cap` with node names, `full` with node objects."""
    found: list[dict[str, Any]] = json.loads(shared(f"recorded/extender-{which}.json").read_text())
    return found


def recorded_nodes() -> list[dict[str, Any]]:
    """The nodes of the recorded cluster, each as it was last sent."""
    nodes: dict[str, dict[str, Any]] = {}
    for exchange in exchanges("full"):
        for node in (exchange["request"]["body"].get("Nodes") or {}).get("items") or []:
            nodes[node["metadata"]["name"]] = node
    return list(nodes.values())


def verbs(cluster: ExtenderCluster, policy: str = POLICY) -> Verbs:
    return Verbs(PolicyRules(compile_policy(policy)), cluster, At(), None)


async def ask(answering: Verbs, verb: str, body: Any) -> Any:
    """The answer's JSON; the status must be 200."""
    answer = await answering.answer(verb, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert answer.status == 200, answer
    return json.loads(answer.body)


@asynccontextmanager
async def serving(*texts: str, port: int = 0, **how: Any) -> AsyncIterator[int]:
    """An extender of these policies, until the block is over; gives its port. `how`: see `serve`."""
    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    profiles = [compile_policy(text) for text in texts]
    task = asyncio.create_task(serve(profiles, "127.0.0.1", port, SystemClock(), stop, started=started, **how))
    await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield started.result()
    finally:
        stop.set()
        await task
