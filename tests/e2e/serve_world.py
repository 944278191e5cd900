"""A cluster without a scheduler, as a process of its own: `python serve_world.py KIND KUBECONFIG NODES`."""

import asyncio
import signal
import sys
from pathlib import Path

from policyengine.clock import SystemClock
from policyengine.simulator.kubeconfig import write_kubeconfig
from policyengine.simulator.kubelet import Kubelet
from policyengine.simulator.sandbox import create, node, world


async def main(kind: str, kubeconfig: str, nodes: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with world("envtest" if kind == "envtest" else "embedded") as running:
        transport = running.connect()
        for number in range(1, nodes + 1):
            await create(transport, "/api/v1/nodes", node(f"node-{number}", "a"))
        kubelet = asyncio.create_task(Kubelet(transport, SystemClock(), stop_after=0.0).run())
        write_kubeconfig(Path(kubeconfig), running.kubeconfig)
        print("the world is up", flush=True)
        await stop.wait()
        kubelet.cancel()
        await transport.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
