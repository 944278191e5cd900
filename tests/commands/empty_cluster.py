"""An API server with nothing in it, as a process: `python -m tests.commands.empty_cluster KUBECONFIG`."""

import asyncio
import sys
from pathlib import Path

from policyengine.simulator.sandbox import world, write_kubeconfig


async def main(kubeconfig: Path) -> None:
    async with world("embedded") as running:
        write_kubeconfig(kubeconfig, running.kubeconfig)
        print("up", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
