"""The walk-through of the rewards, in a sandbox, over HTTP, with the ordinary Kubernetes client."""

from __future__ import annotations

import asyncio
import random
import runpy
from pathlib import Path

import pytest
import yaml

from policyengine.clock import SystemClock
from policyengine.commands.policies import load_profiles
from policyengine.kube.http.client import Client
from policyengine.kube.stores import SqliteStore
from policyengine.server.rewards.monitor import Monitor, Settings
from policyengine.simulator.sandbox import sandbox, world

ROOT = Path(__file__).resolve().parents[2]


async def test_a_node_on_which_a_group_fails_gets_no_more_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk = runpy.run_path(str(ROOT / "examples" / "rewards" / "walk.py"))["walk"]
    kubeconfig = tmp_path / "kubeconfig"
    profiles = load_profiles([ROOT / "policies" / "rewards.policy"])
    async with world("embedded") as running, sandbox(running, 4, profiles):
        kubeconfig.write_text(yaml.safe_dump(running.kubeconfig), encoding="utf-8")
        store = SqliteStore(tmp_path / "rewards.sqlite")
        client = Client(running.connect())
        stop = asyncio.Event()
        monitor = Monitor(client, store, SystemClock(), random.Random(1), Settings(interval=0.2))
        learning = asyncio.create_task(monitor.run(stop))
        placed = await asyncio.to_thread(walk, str(kubeconfig))
        stop.set()
        await learning
        store.close()
    assert sum(placed.values()) == 10
    assert placed["node-1"] == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["node", "reward", "pods"]
    assert [row.split()[0] for row in rows] == [f"node-{number}" for number in range(1, 5)]
    assert float(rows[0].split()[1]) == pytest.approx(0.9**10, abs=0.001)
