"""`python -m benchmarks`: what a workload, a decision, an event, a cluster and a policy cost on this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from benchmarks import records
from benchmarks.measure import measure
from benchmarks.options import BenchError, asked
from benchmarks.page import page, pictures
from benchmarks.picture import NoPicture, svg
from benchmarks.records import Record, UnusableRecords
from benchmarks.report import differences, sections
from policyengine.commands.main import main
from policyengine.commands.options import param_option

WORSE = 1


@click.command()
@click.argument("what", metavar="WHAT")
@click.argument("workload", required=False)
@click.option("--nodes", type=click.IntRange(1), help="Nodes of the cluster; default: the workload's.")
@click.option("--pods", type=click.IntRange(1), help="Pods to place, or to hold; default: the workload's.")
@click.option("--policy", type=click.Path(path_type=Path), metavar="FILE", help="Default: the in-tree plugins.")
@param_option
@click.option(
    "--create",
    type=click.Choice(("before", "during")),
    default="before",
    show_default=True,
    help="When the pods are created: before the scheduler starts, or while it runs.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An API server without nodes, filled and emptied; default: the embedded one, in a process of its own.",
)
@click.option(
    "--apiserver",
    type=click.Choice(("embedded", "envtest")),
    default="embedded",
    show_default=True,
    help="envtest: start the real etcd and kube-apiserver in $KUBEBUILDER_ASSETS.",
)
@click.option(
    "--beside",
    metavar="COMMAND",
    help="Measure another scheduler in turn with ours: PROGRAM --kubeconfig {kubeconfig} …; `kube-scheduler` alone is "
    "the one in $KUBEBUILDER_ASSETS without limits on its requests.",
)
@click.option("--limit/--no-limit", "with_limit", default=True, help="Measure the client that decides nothing, too.")
@click.option("--record", "records", is_flag=True, help="Measure ours once more while it records what happens.")
@click.option(
    "--schedulers", type=click.IntRange(2, 16), metavar="N", help="Split the pods among N schedulers, each its leader."
)
@click.option("--runs", type=click.IntRange(1, 99), default=1, show_default=True, help="Runs; medians are told.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw a workload's run, or scale, as SVG."
)
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE", help="Keep the results in FILE.")
@click.option("--compare", type=click.Path(path_type=Path), metavar="FILE", help="Compare ratios with those in FILE.")
@click.option(
    "--threshold", type=click.FloatRange(0), default=0.25, show_default=True, help="Growth of a ratio that is too much."
)
@click.option("--from", "source", type=click.Path(path_type=Path), metavar="FILE", help="Results that `page` shows.")
@click.option(
    "--plots",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where `page` puts its pictures; default: none.",
)
def bench(
    what: str,
    workload: str | None,
    output: str,
    plot: Path | None,
    save: Path | None,
    compare: Path | None,
    threshold: float,
    source: Path | None,
    plots: Path | None,
    **options: Any,
) -> None:
    """Measure a workload end to end, or a part alone.

    \b
    WORKLOAD              an API server and the scheduler, each in a process of its own
    limit [WORKLOAD]      a client that decides nothing in the scheduler's place
    decisions [WORKLOAD]  the core without a server: CPU of a decision and of an event
    memory [WORKLOAD]     what holding the workload's nodes and pods takes
    scale                 decisions at 1,000 to 100,000 nodes and up to 150,000 pods: exponents, memory each
    language              lint, compile, one filter over every node
    reload                a policy replaced: for how long the event loop is held
    plan                  `policyengine plan`: a day of 1,000 nodes and 50,000 pods, and a cluster of 5,000 nodes
    tuning                `policyengine tune`: 200 candidates on an hour of 1,000 nodes
    recording             an hour of 5,000 nodes and 100 pod events a second, recorded: bytes and CPU
    devices               the first decision about a ResourceClaim among 40,000 devices, and those after it
    queue                 the queue at 100,000 pods; refused pods in the way; a gang of 1,000
    server                the embedded API server on one core: start, memory, bindings and watch events a second
    extender              the extender on one core: names at 200 requests a second, whole node objects
    pages                 the pages that people look at: how long each takes, and what ten viewers cost
    churn                 attempts per placement and memory while pods, nodes and taints change, on a real server
    ratios                a few seconds' worth of decisions, as ratios within the run
    page --from FILE      docs/performance.md, from saved results

    Workloads: peer-basic, -mixed, -spread, -affinity, -antiaffinity, -nodeaffinity as kube-scheduler was measured
    with, and those of Kubernetes' scheduler_perf by name (SchedulingBasic, TopologySpreading, …).

    Exit codes: 0 measured; 1 a ratio grew by more than --threshold; 2 unusable input; 3 server unreachable.
    """
    try:
        if what == "page":
            _page(source, plots)
            return
        record = measure(asked(what, workload, **options))
        _tell(record, output)
        worse = compare is not None and _compare(compare, record, threshold, output)
        if save is not None:
            records.save(save, [record])
        if plot is not None:
            _write(plot, svg(record))
    except (UnusableRecords, NoPicture) as error:
        raise BenchError(str(error)) from None
    if worse:
        sys.exit(WORSE)


def _tell(record: Record, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(record.to_json(), indent=2))
        return
    for section in sections([record]):
        click.echo(section)
    click.echo(record.machine)


def _compare(path: Path, record: Record, threshold: float, output: str) -> bool:
    """Show the differences (on standard error beside JSON); whether one is too large."""
    found = records.compare(records.load(path), record)
    click.echo(differences(found, threshold), err=output == "json")
    return any(one.growth > threshold for one in found)


def _page(source: Path | None, plots: Path | None) -> None:
    if source is None:
        raise click.UsageError("`page` needs --from FILE, a file that --save has written")
    found = records.load(source)
    try:
        drawn = pictures(found) if plots is not None else {}
        text = page(found, plots.name if plots is not None else None)
    except (KeyError, TypeError) as error:
        raise BenchError(f"`{source}` was saved by another version: a result in it has no {error}") from None
    for name, picture in drawn.items():
        assert plots is not None
        _write(plots / name, picture)
    click.echo(text, nl=False)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BenchError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from None


if __name__ == "__main__":
    main(command=bench, prog_name="python -m benchmarks")
