"""`policyengine demo`: a policy at work on a cluster in memory, shown as a table. Ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile
    from policyengine.kube.http.client import Client

POLICY = "policies/riya.policy"
EXAMPLE = "examples/riya/2-groups"
NODES = 3
COLOURS = frozenset({"green", "red", "yellow", "blue"})
"""Groups named after a colour are shown in it."""
PATIENCE = 15.0
"""Seconds after which the demo shows what there is."""


def found(packed: str, written: str) -> Path:
    """A file of the demo: the wheel brings it along under one name, a checkout has it under another."""
    here = Path(__file__).resolve().parent
    inside = here / packed
    return inside if inside.is_file() else here.parent.parent / written


@click.command()
def demo() -> None:
    """Start an API server, nodes and the scheduler in this process, create pods, and show who ran where and why."""
    from policyengine.commands.policies import load_profiles
    from policyengine.kube.config import process

    profiles = load_profiles([found("../policies/riya.policy", POLICY)])
    pods, events = process.run(_run(profiles))
    _show(pods, events)


async def _run(profiles: list[Profile]) -> tuple[list[Any], list[Any]]:
    """Create the pods, start everything, wait until every pod is placed or was told why not; give pods and events."""
    import yaml

    from policyengine.kube.http.client import Client
    from policyengine.simulator import sandbox as simulator

    async with simulator.world("embedded") as world:
        outside = world.connect()
        client = Client(outside)
        # The pods are there first, so that all of them queue together and the order is the policy's.
        pods = found("demo.yaml", f"{EXAMPLE}/groups.yaml")
        for item in yaml.safe_load_all(pods.read_text(encoding="utf-8")):
            await simulator.create(outside, "/api/v1/namespaces/default/pods", item)
        async with simulator.sandbox(world, NODES, profiles):
            await _settle(client)
        return (
            await _items(client, "/api/v1/namespaces/default/pods"),
            await _items(client, "/apis/events.k8s.io/v1/namespaces/default/events"),
        )


async def _settle(client: Client) -> None:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while asyncio.get_running_loop().time() < deadline:
        pods = await _items(client, "/api/v1/namespaces/default/pods")
        if all(_is_settled(pod) for pod in pods):
            return
        await asyncio.sleep(0.05)


def _is_settled(pod: Any) -> bool:
    if pod["spec"].get("nodeName"):
        return bool(pod["status"]["phase"] == "Running")
    return any(one["type"] == "PodScheduled" for one in pod["status"].get("conditions") or ())


async def _items(client: Client, path: str) -> list[Any]:
    import json

    found: list[Any] = json.loads(await client.call("GET", path, seconds=10.0))["items"] or []
    return found


def _show(pods: list[Any], events: list[Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    placed_at = {one["regarding"]["name"]: one["eventTime"] for one in events if one["reason"] == "Scheduled"}
    first = [pod for pod in pods if pod["metadata"]["name"] in placed_at]
    first.sort(key=lambda pod: placed_at[pod["metadata"]["name"]])
    waiting = [pod for pod in pods if pod["metadata"]["name"] not in placed_at]
    table = Table(title=f"{EXAMPLE} by {POLICY}", title_justify="left", box=box.SIMPLE_HEAD)
    for title in ("order", "pod", "priority", "node", "why"):
        table.add_column(title, justify="right" if title in ("order", "priority") else "left")
    for order, pod in enumerate(first, start=1):
        table.add_row(str(order), *_cells(pod), _why_now(pod, pods))
    for pod in waiting:
        table.add_row("", *_cells(pod), Text(_why_not(pod), style="yellow"))
    console.print(table)
    console.print(
        f"{len(first)} pods placed, {len(waiting)} waiting; the file names them lowest priority first.\n"
        "Next: `policyengine sandbox` and your own kubectl, as the README shows.",
        soft_wrap=True,
        highlight=False,
    )


def _cells(pod: Any) -> Iterable[Any]:
    from rich.text import Text

    labels = pod["metadata"].get("labels") or {}
    colour = labels.get("podGroup", "") if labels.get("podGroup") in COLOURS else ""
    node = pod["spec"].get("nodeName")
    return (
        Text(pod["metadata"]["name"], style=colour),
        labels.get("groupPriority", "0"),
        node or Text("waits", style="yellow"),
    )


def _why_now(pod: Any, pods: list[Any]) -> str:
    """What the policy looked at when it let this pod go."""
    labels = pod["metadata"].get("labels") or {}
    group = labels.get("podGroup")
    if not group:
        return "waits for nobody"
    members = sum((one["metadata"].get("labels") or {}).get("podGroup") == group for one in pods)
    return f"group complete: {members} of {labels.get('minAvailable', '1')} members"


def _why_not(pod: Any) -> str:
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled":
            return str(condition.get("message", ""))
    return "not tried yet"
