"""`policyengine sandbox`: an API server, nodes, a stand-in kubelet and the scheduler in one process."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from policyengine.commands.options import cannot_write, param_option, policy_option
from policyengine.commands.policies import load_profiles

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile


@click.command()
@click.option("--nodes", type=click.IntRange(0, 5000), default=3, show_default=True, help="4 cpu, 16Gi each.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the API server; default: any free one.")
@policy_option()
@click.option(
    "--kubeconfig-out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("sandbox.kubeconfig"),
    show_default=True,
    metavar="FILE",
)
@click.option(
    "--apiserver",
    type=click.Choice(("embedded", "envtest")),
    default="embedded",
    show_default=True,
    help="envtest: the real etcd and kube-apiserver in $KUBEBUILDER_ASSETS.",
)
@param_option
@click.option("-v", "--verbose", is_flag=True, help="Say more about what happens.")
def sandbox(
    nodes: int,
    port: int,
    paths: tuple[Path, ...],
    kubeconfig_out: Path,
    apiserver: Literal["embedded", "envtest"],
    params: dict[str, str],
    verbose: bool,
) -> None:
    """Run a small cluster without machines, until Ctrl-C, and write a kubeconfig for your own kubectl.

    Policies come from --policy, and in kube-system from SchedulingPolicies and from ConfigMaps labelled
    policyengine.io/policy=true. Pods without a schedulerName are placed as kube-scheduler would.
    """
    from policyengine.kube.config import process

    profiles = load_profiles(paths, params, run_tests=True)
    process.start_logging("debug" if verbose else "info")
    process.run(_serve(nodes, port, profiles, kubeconfig_out, apiserver))


async def _serve(
    nodes: int, port: int, profiles: list[Profile], out: Path, apiserver: Literal["embedded", "envtest"]
) -> None:
    from policyengine.commands.cluster_client import stop_on_signals
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.kube.policies.proving import Prover
    from policyengine.simulator import sandbox as simulator
    from policyengine.simulator.sandbox import write_kubeconfig

    stop = stop_on_signals()
    async with simulator.world(apiserver, port) as world:
        try:
            write_kubeconfig(out, world.kubeconfig)
        except OSError as error:
            raise cannot_write(out, error) from None
        with closing(Prover(installed_registry)) as prover:
            async with simulator.sandbox(world, nodes, profiles, compile_files=prover.compiled):
                click.echo(_welcome(world.url, out, nodes, profiles))
                await stop.wait()


def _welcome(url: str, out: Path, nodes: int, profiles: list[Profile]) -> str:
    names = ", ".join(f"{profile.scheduler_name} (policy {profile.name})" for profile in profiles)
    return "\n".join(
        (
            f"API server  {url}",
            f"nodes       {nodes}",
            f"schedulers  {names or 'default-scheduler only; give --policy, or apply a ConfigMap'}",
            f"try         kubectl --kubeconfig {out} get nodes",
            "Ctrl-C ends it.",
        )
    )
