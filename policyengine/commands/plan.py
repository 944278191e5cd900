"""`policyengine plan`: what another policy would do, before it does it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from policyengine.clock import SystemClock
from policyengine.commands import options
from policyengine.commands.beside import beside
from policyengine.commands.policies import load_profiles
from policyengine.commands.progress import Told, progress
from policyengine.control_characters import escaped
from policyengine.seldom_collected import collect_seldom

if TYPE_CHECKING:
    from policyengine.diagnosis.dump import DumpedObject
    from policyengine.diagnosis.forecast import Forecast
    from policyengine.framework.profile import Profile
    from policyengine.plan.comparison import Effect, Plan
    from policyengine.plan.membership import Memberships
    from policyengine.plan.rerun import Rerun

T = TypeVar("T")
FAILED, UNUSABLE = 1, 2
MANY = 2_000
"""Pods from which on the policies are played side by side."""


@click.command()
@click.argument("policies", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="[OLD] NEW")
@options.file_option("--cluster", "cluster", help="A dump of the cluster, as for `explain`; - reads standard input.")
@click.option(
    "--recording",
    "recordings",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="RECORDING",
    help="What happened, played again; of several, figures are told as they are distributed.",
)
@options.jobs_option
@options.file_option("--scenario", "scenario", help="A scenario of `simulate`.")
@options.cluster_options("Of the cluster that is read where nothing else is given.")
@options.param_option
@click.option("--now", type=options.Moment(), metavar="TIME", help="The time of a dump.  [default: now]")
@click.option("--fail-on", metavar="EXPRESSION", help="Exit with 1 where it is true, as `waiting > 0`.")
@click.option("--by-rule", is_flag=True, help="Play once more for each rule that differs, with that one undone.")
@options.output_option("text", "json", "markdown", "html")
def plan(
    policies: tuple[Path, ...],
    cluster: Path | None,
    recordings: tuple[Path, ...],
    jobs: int,
    scenario: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    params: dict[str, str],
    now: float | None,
    fail_on: str | None,
    by_rule: bool,
    output: str,
) -> None:
    """Show what the policy NEW would do where OLD serves: who is placed, waits, is evicted, how long, how full.

    Without OLD: what serves in the cluster, at the end of the recording, or in the scenario. A cluster is played as it
    is and filled anew in the order of creation; a recording or scenario is played with the same arrivals, departures
    and node changes under both, on virtual time. Of several recordings each figure is told as it is distributed over
    them, with --fail-on true where it is true of one.

    Exit codes: 0; 1 the condition of --fail-on is true; 2 something cannot be used.
    """
    from policyengine.commands import sweeping
    from policyengine.plan.condition import check, holds

    if len(policies) > 2:
        raise click.UsageError("give the NEW policy, or OLD and NEW")
    if sum(map(bool, (cluster, recordings, scenario))) > 1:
        raise click.UsageError("give one of --cluster, --recording and --scenario")
    if recordings or scenario is not None:
        options.refuse_given("a dump or a cluster that is there", "--now")
    if cluster is not None or recordings or scenario is not None:
        options.refuse_given("a cluster that is there", "--kubeconfig", "--context")
    if fail_on is not None:
        _asked(check, fail_on)  # before anything is played
    collect_seldom()
    new = load_profiles(policies[-1:], params)
    old = load_profiles(policies[:1]) if len(policies) == 2 else None
    for path, profiles in zip(reversed(policies), (new, old), strict=False):
        if not profiles:
            raise options.UnusableInput(f"`{path}` holds no policy")
    if len(recordings) > 1:
        if by_rule or output not in ("text", "json"):
            raise click.UsageError("--by-rule, -o markdown and -o html are of one recording")
        condition = partial(_asked, holds, fail_on) if fail_on else None
        is_true, is_damaged = sweeping.recordings(recordings, old, new, condition, jobs, output)
        sys.exit(FAILED if is_true else UNUSABLE if is_damaged else 0)
    if recordings:
        source = _of_recording(recordings[0], old, new)
    elif scenario is not None:
        source = _of_scenario(scenario, old)
    else:
        source = _of_cluster(cluster, kubeconfig, context, old, now)
    found = _made(source, new, by_rule, jobs)
    _tell(found, output)
    if fail_on is not None and _asked(holds, fail_on, found.comparison.old, found.comparison.new):
        sys.exit(FAILED)
    sys.exit(UNUSABLE if source.is_damaged else 0)


def _tell(found: Plan, output: str) -> None:
    from policyengine.commands.console import print_tables
    from policyengine.commands.reports.plan_report import page, written
    from policyengine.plan.tables import head, tables

    if output == "json":
        click.echo(json.dumps(found.json, indent=2))
    elif output == "markdown":
        click.echo(written(found))
    elif output == "html":
        click.echo(page(found), nl=False)
    else:
        print_tables(head(found), tables(found))


def _asked(what: Callable[..., T], *given: object) -> T:
    """What comes of a condition. Raises `click.UsageError` where that is none."""
    from policyengine.plan.condition import WrongCondition

    try:
        return what(*given)
    except WrongCondition as error:
        raise click.UsageError(f"--fail-on {error}") from None


@dataclass(frozen=True, slots=True)
class Source:
    """What is played under both policies."""

    served: Sequence[Profile]
    """What decides today."""
    play: Callable[[Sequence[Profile], Told, Memberships], Rerun]
    where: str
    pods: int
    notes: Sequence[str] = ()
    objects: Sequence[DumpedObject] | None = None
    """Of a cluster."""
    now: float = 0.0
    is_damaged: bool = False
    """Whether only what could be read of it is played."""


def _made(source: Source, new: Sequence[Profile], by_rule: bool, jobs: int) -> Plan:
    from policyengine.plan.comparison import Plan, compared
    from policyengine.plan.membership import Memberships
    from policyengine.plan.snapshot import waiting
    from policyengine.trials.ledger import clock

    before, after = _sides(source.served, new)
    memberships = Memberships(before, after)
    old = partial(_played, source, before, memberships, lambda share: None)
    with beside(old, source.pods >= MANY and jobs > 1) as result, progress("playing both policies") as told:
        second, foreseen = _played(source, after, memberships, told)
        first, foreseen_before = result()
    snapshot = waiting(foreseen_before, foreseen) if foreseen_before is not None and foreseen is not None else None
    notes = list(source.notes)
    if first.left_out:
        notes.append(f"{first.left_out:,} pods stood on nodes that were never seen; they are left out")
    effects = _effects(source, before, after, memberships, second, notes) if by_rule else None
    how = ", filled anew in the order of creation" if source.objects is not None else ""
    over = "" if how else f" over {clock(first.end)}"
    return Plan(
        f"{len(first.ledger.pods):,} pods{over} of {source.where}{how}",
        _named(before),
        _named(after),
        compared(first, second),
        snapshot,
        notes,
        effects,
        (first, second),
    )


def _played(
    source: Source, profiles: Sequence[Profile], memberships: Memberships, told: Told
) -> tuple[Rerun, Forecast | None]:
    """A run under the profiles; of a cluster also what becomes of the pods that wait."""
    from policyengine.diagnosis.forecast import forecast

    foreseen = None if source.objects is None else forecast(source.objects, profiles, source.now)
    return source.play(profiles, told, memberships), foreseen


def _effects(
    source: Source,
    before: Sequence[Profile],
    after: Sequence[Profile],
    memberships: Memberships,
    second: Rerun,
    notes: list[str],
) -> list[Effect]:
    """What each change does, the one that touches most pods first."""
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.plan.by_rule import MOST, changes
    from policyengine.plan.comparison import Effect, compared

    found = []
    undone = changes(before, after, installed_registry())
    if len(undone) > MOST:
        notes.append(f"the policies differ in {len(undone)} rules; the first {MOST} were played")
    for number, one in enumerate(undone[:MOST], 1):
        with progress(f"change {number} of {min(len(undone), MOST)}: {escaped(one.rule)} {one.how}") as told:
            found.append(Effect(one.rule, one.how, compared(source.play(one.profiles, told, memberships), second)))
    return sorted(found, key=lambda effect: -effect.pods)


def _of_recording(path: Path, old: Sequence[Profile] | None, new: Sequence[Profile]) -> Source:
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.plan.history import read, without_pods
    from policyengine.plan.rerun import rerun
    from policyengine.plugins.registry import with_default_profile

    try:
        with progress("reading the recording"):
            history = read(path, installed_registry())
    except OSError as error:
        raise options.cannot_read(path, error) from None
    served = old or with_default_profile([*history.profiles.values()])
    _sides(served, new)
    if told := without_pods(history, new):
        raise options.UnusableInput(f"recording {path.name} {told}")
    play, where, count = partial(rerun, history), f"recording {path.name}", len(history.pods)
    return Source(served, play, where, count, history.notes, is_damaged=history.is_damaged)


def _of_scenario(path: Path, old: Sequence[Profile] | None) -> Source:
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.plan.membership import Watching
    from policyengine.plan.rerun import finished
    from policyengine.trials.simulation import Simulation

    registry = installed_registry()
    served = Simulation(path, old, registry=registry).profiles

    def play(profiles: Sequence[Profile], told: Told, memberships: Memberships) -> Rerun:
        watching = Watching(memberships)
        given = None if old is None and all(map(is_, profiles, served)) else profiles
        run = Simulation(path, given, registry=registry, watch=watching)
        watching.play = run.play
        run.run(told)
        return finished(run.play, watching)

    return Source(served, play, f"scenario {path.name}", 0)


def _of_cluster(
    path: Path | None, kubeconfig: Path | None, context: str | None, old: Sequence[Profile] | None, now: float | None
) -> Source:
    from policyengine.commands.explaining.explained_cluster import from_file, from_server
    from policyengine.kube.config import credentials
    from policyengine.plan.rerun import rerun
    from policyengine.plan.snapshot import history_of, once_each

    found = from_file(path, old) if path is not None else from_server(credentials.load(kubeconfig, context), old)
    moment = now if now is not None else SystemClock().now()
    objects, notes = once_each(found.objects)
    history = history_of(objects, moment)
    play = partial(rerun, history)
    return Source(found.profiles, play, found.where, len(history.pods), [*found.notes, *notes], objects, moment)


def _sides(old: Sequence[Profile], new: Sequence[Profile]) -> tuple[list[Profile], list[Profile]]:
    """What serves before and after."""
    from policyengine.plan.rerun import NotServed, replaced

    try:
        return list(old), replaced(old, new)
    except NotServed as error:
        raise options.UnusableInput(f"{error}: give OLD and NEW for the same name") from None


def _named(profiles: Sequence[Profile]) -> str:
    return ", ".join(f"{profile.name} {profile.policy_hash[:12]}" for profile in profiles)
