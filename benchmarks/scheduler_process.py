"""The scheduler under measurement: `policyengine run` without its ConfigMaps, with a sample of its decisions checked.

Argument: {"kubeconfig": PATH, "policy": TEXT, "params": {NAME: VALUE}, "check_every": N, "lease": NAME, "record":
FOLDER}; an empty policy means the in-tree plugins; with a lease it begins once it leads, with a folder it records.
Says {"started": true}; ends when its standard input does, and says how many decisions were checked.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.audit import AuditedCore
from benchmarks.processes import say, stdin_closed
from benchmarks.workloads import NAMESPACE
from policyengine.clock import SystemClock
from policyengine.framework.profile import Profile
from policyengine.kube.config import credentials, process
from policyengine.kube.http.client import Client
from policyengine.kube.leader import LeaderElector, LeaseSettings, new_identity
from policyengine.kube.leaders_transport import LeadersTransport
from policyengine.kube.record_writer import RecordWriter
from policyengine.kube.runner import Runner
from policyengine.plugins.registry import default_profile
from policyengine.recording.directory import Limits
from policyengine.scheduler.messages import DrivenCore
from policyengine.scheduler.state import SchedulerState


async def main(argument: dict[str, Any]) -> None:
    """Schedule."""
    profile = _compiled(argument["policy"], argument.get("params", {})) if argument["policy"] else default_profile()
    clock, random = SystemClock(), Random()
    bare = credentials.load(Path(argument["kubeconfig"])).connect()
    elector = None
    if argument.get("lease"):
        settings = LeaseSettings(argument["lease"], NAMESPACE)
        elector = LeaderElector(Client(bare), clock, random, new_identity(settings.name, random), settings)
    client = Client(LeadersTransport(bare, elector) if elector else bare)
    core = AuditedCore(SchedulerState([profile]), argument["check_every"])
    driven: DrivenCore = core
    writing = AsyncExitStack()
    if argument.get("record"):
        writer = RecordWriter(Path(argument["record"]), Limits(), clock, random)
        driven = writer.recorded(core.state, core)
        await writing.enter_async_context(writer.running())
    stop = asyncio.Event()
    runner = Runner(driven, client, clock, random, elector=elector)
    work = asyncio.create_task(runner.run(stop))
    quiet = asyncio.create_task(process.keep_quiet(runner.synced))
    leading = asyncio.create_task(elector.run()) if elector else None
    say({"started": True})
    asked = asyncio.create_task(stdin_closed())
    await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    await work
    await writing.aclose()
    quiet.cancel()
    if elector and leading:
        leading.cancel()
        await elector.release()
    await client.close()
    say({"checks": core.checks, "check_cpu_seconds": core.cpu_ns / 1e9})


def _compiled(policy: str, params: dict[str, str]) -> Profile:
    from policyengine.policy_compiler import compile_policy  # a tenth of the start's CPU

    return compile_policy(policy, params)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    process.run(main(json.loads(sys.argv[1])))
