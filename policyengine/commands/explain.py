"""`policyengine explain`: what the scheduler that runs says of the pods, and what becomes of each that waits, and why;
or, with `--alone`, what the policies say of each by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyengine.clock import SystemClock
from policyengine.commands import options
from policyengine.commands.policies import given_profiles
from policyengine.control_characters import escaped_lines

if TYPE_CHECKING:
    from policyengine.commands.explaining.explained_cluster import ExplainedCluster
    from policyengine.framework.profile import Profile

ENDPOINTS = "http://127.0.0.1:10259"


@click.command()
@click.argument("name", required=False, metavar="[[NAMESPACE/]NAME]")
@options.file_option(
    "--cluster", "cluster_path", help="A file instead: `kubectl get nodes,pods,… -A -o json|yaml`; - is standard input."
)
@options.cluster_options("The cluster; default: $KUBECONFIG, ~/.kube/config, or the cluster this runs in.")
@options.policy_option(" Default: those that serve in the cluster.")
@options.param_option
@click.option(
    "--alone", is_flag=True, help="Judge each pod by itself, as if no other waited, whatever its schedulerName."
)
@click.option(
    "--now",
    type=options.Moment(),
    metavar="TIME",
    help="What `now` is, such as 2026-01-05T18:30:00+01:00; default: the clock.",
)
@options.output_option("text", "json")
@click.option("--pod", metavar="NS/NAME", hidden=True, help="An older spelling of NAME.")
@click.option("--live", metavar="NS/NAME", help="Instead: the story of this pod, from the endpoints at --address.")
@click.option(
    "--address",
    metavar="URL",
    help=f"With --live: where the endpoints of a scheduler without a Lease are.  [default: {ENDPOINTS}]",
)
@options.file_option(
    "--certificate-authority", "authority", help="With --live: who signed the certificate of an https address."
)
@click.option("--tls-server-name", "server_name", metavar="NAME", help="With --live: the name in that certificate.")
@options.scheduler_namespace_option
def explain(
    name: str | None,
    cluster_path: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    paths: tuple[Path, ...],
    params: dict[str, str],
    alone: bool,
    now: float | None,
    output: str,
    pod: str | None,
    live: str | None,
    address: str | None,
    authority: Path | None,
    server_name: str | None,
    leases: str,
) -> None:
    """Why pods wait, or are where they are: NAME, or all that wait, in the queue's order.

    A policyengine scheduler that runs in the cluster is asked: found by its Lease, through the API server. Without one,
    and with --cluster, --policy or --now, all that wait are played through the scheduler itself, on virtual time:
    schedulerName, gates, gangs, quotas, permits and preemption count. Nothing is changed in the cluster. A name without
    namespace is one of the context's namespace; in a file, of `default`.
    """
    from policyengine.commands.explaining.explained_cluster import from_file, from_server
    from policyengine.language.parse import SourceError

    if live is not None:
        from policyengine.commands.explaining.live_answers import explain_live

        if name or pod or cluster_path or paths or params or alone or now is not None:
            raise click.UsageError(
                "--live tells what has happened, to one pod; NAME, --cluster, --policy, --param, --alone and --now are "
                "for what would happen"
            )
        explain_live(live, address or ENDPOINTS, kubeconfig, authority, server_name, output)
        return
    if address or authority or server_name:
        raise click.UsageError("--address, --certificate-authority and --tls-server-name go with --live")
    if cluster_path is not None and (kubeconfig or context):
        raise click.UsageError("give --cluster FILE, or --kubeconfig and --context of a cluster that is there")
    try:
        given = given_profiles(paths, params)
    except SourceError as error:
        raise options.UnusableInput(str(error)) from None
    asked = pod if name is None else name
    notes: list[str] = []
    if cluster_path is None and given is None and not alone and now is None:
        from policyengine.commands.explaining.live_answers import explain_running

        unasked = explain_running(asked, kubeconfig, context, leases, output)
        if unasked is None:
            return
        notes = unasked
    if cluster_path is not None:
        cluster = from_file(cluster_path, given)
    else:
        from policyengine.kube.config import credentials

        cluster = from_server(credentials.load(kubeconfig, context), given)
    for note in (*notes, *cluster.notes):
        click.echo(f"note: {escaped_lines(note)}", err=True)
    entries, show = _answered(cluster, asked, alone, SystemClock().now() if now is None else now, given)
    if output == "json":
        click.echo(json.dumps(entries, indent=2))
    else:
        show(entries)


def _answered(
    cluster: ExplainedCluster, asked: str | None, alone: bool, now: float, given: Sequence[Profile] | None
) -> tuple[list[dict[str, Any]], Callable[[Sequence[Mapping[str, Any]]], None]]:
    """What the cluster tells of one pod, or of all that wait, and what prints it. `given`: the policies that were
    named, if any was."""
    from policyengine.commands.explaining.as_text import show, show_forecast, show_placed
    from policyengine.diagnosis.why_here import explain_placed

    if asked is not None:
        asked = _named(asked, cluster)
        phase = cluster.pods[asked].status.phase
        if phase in ("Succeeded", "Failed"):
            raise options.UnusableInput(
                f"no pod `{asked}` waits in {cluster.where}: it has {phase.lower()}, and has no node any more"
            )
        if not alone and asked not in cluster.waiting:
            return [explain_placed(cluster.objects, cluster.profiles, asked, now)], show_placed
    return (_alone(cluster, asked, now, given), show) if alone else (_forecast(cluster, asked, now), show_forecast)


def _alone(
    cluster: ExplainedCluster, name: str | None, now: float, given: Sequence[Profile] | None
) -> list[dict[str, Any]]:
    """Each by itself; a pod that none of the policies serves is judged by the first of those named, or the defaults."""
    from policyengine.diagnosis.explain import explain_alone

    if name is not None and name not in cluster.waiting:
        node = cluster.pods[name].spec.node_name
        raise options.UnusableInput(
            f"no pod `{name}` waits in {cluster.where}: it is on node `{node}`; without --alone `explain` says why"
        )
    profiles = given or cluster.profiles[::-1]
    return explain_alone(cluster.objects, profiles, name, suggestions=True, now=now)


def _forecast(cluster: ExplainedCluster, name: str | None, now: float) -> list[dict[str, Any]]:
    """All together; of the one that is named, or the only one that waits, with what its last attempt weighed."""
    from policyengine.commands.progress import progress
    from policyengine.diagnosis.explain import explain_forecast

    waiting = cluster.waiting
    picked = next(iter(waiting)) if name is None and len(waiting) == 1 else name
    with progress(f"playing {len(waiting)} pods that wait") as told:
        return explain_forecast(cluster.objects, cluster.profiles, now, picked, told)


def _named(name: str, cluster: ExplainedCluster) -> str:
    """`namespace/name` of the pod that is meant. Raises `UnusableInput` where there is none."""
    namespace, slash, bare = name.rpartition("/")
    if not bare or (slash and not namespace) or "/" in namespace:
        raise options.UnusableInput(f"`{name}` is not of the form NAME or NAMESPACE/NAME")
    key = f"{namespace or cluster.namespace}/{bare}"
    if key not in cluster.pods:
        from policyengine.suggestion import closest

        others = sorted(other for other in cluster.pods if other.partition("/")[2] == bare)
        near = others[0] if others else closest(key, cluster.waiting)
        hint = f"; did you mean `{near}`?" if near else ""
        raise options.UnusableInput(f"no pod `{key}` is in {cluster.where}{hint}")
    return key
