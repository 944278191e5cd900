"""`policyengine plan`: what another policy would do, before it does it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyengine.commands.options import Moment, UnusableInput, cannot_read, file_option, output_option, param_option
from policyengine.commands.policies import load_profiles
from policyengine.commands.progress import progress

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile
    from policyengine.plan.comparison import Plan

FAILED = 1


@click.command()
@click.argument("policies", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="[OLD] NEW")
@file_option("--cluster", "cluster", help="A dump of the cluster, as for `explain`; - reads standard input.")
@click.option("--recording", type=click.Path(path_type=Path), metavar="RECORDING", help="What happened, played again.")
@file_option("--scenario", "scenario", help="A scenario of `simulate`.")
@file_option("--kubeconfig", help="Of the cluster that is read where nothing else is given.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default: its current one.")
@param_option
@click.option("--now", type=Moment(), metavar="TIME", help="The time of a dump.  [default: now]")
@click.option("--fail-on", metavar="EXPRESSION", help="Exit with 1 where it is true, as `waiting > 0`.")
@output_option("text", "json", "markdown")
def plan(
    policies: tuple[Path, ...],
    cluster: Path | None,
    recording: Path | None,
    scenario: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    params: dict[str, str],
    now: float | None,
    fail_on: str | None,
    output: str,
) -> None:
    """Show what the policy NEW would do where OLD serves: who is placed, waits, is evicted, how long, how full.

    Without OLD: what serves in the cluster, at the end of the recording, or in the scenario. A cluster is played as it
    is and filled anew in the order of creation; a recording or scenario is played with the same arrivals, departures
    and node changes under both, on virtual time.

    Exit codes: 0; 1 the condition of --fail-on is true; 2 something cannot be used.
    """
    if len(policies) > 2:
        raise click.UsageError("give the NEW policy, or OLD and NEW")
    if sum(one is not None for one in (cluster, recording, scenario)) > 1:
        raise click.UsageError("give one of --cluster, --recording and --scenario")
    if fail_on is not None:
        _check(fail_on)
    new = load_profiles(policies[-1:], params)
    old = load_profiles(policies[:1]) if len(policies) == 2 else None
    if recording is not None:
        found = _of_recording(recording, old, new)
    elif scenario is not None:
        found = _of_scenario(scenario, old, new)
    else:
        found = _of_cluster(cluster, kubeconfig, context, old, new, now)
    from policyengine.commands.plan_text import show, written

    if output == "json":
        click.echo(json.dumps(found.json, indent=2))
    elif output == "markdown":
        click.echo(written(found))
    else:
        show(found)
    sys.exit(FAILED if fail_on is not None and _holds(fail_on, found) else 0)


def _check(condition: str) -> None:
    """Before anything is played. Raises `click.UsageError`."""
    from policyengine.plan.condition import WrongCondition, check

    try:
        check(condition)
    except WrongCondition as error:
        raise click.UsageError(f"--fail-on {error}") from None


def _holds(condition: str, found: Plan) -> bool:
    from policyengine.plan.condition import WrongCondition, holds

    try:
        return holds(condition, found.comparison.old, found.comparison.new)
    except WrongCondition as error:
        raise click.UsageError(f"--fail-on {error}") from None


def _of_recording(path: Path, old: Sequence[Profile] | None, new: Sequence[Profile]) -> Plan:
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.plan.comparison import Plan, compared
    from policyengine.plan.history import read
    from policyengine.plan.rerun import rerun
    from policyengine.plugins.registry import with_default_profile
    from policyengine.trials.ledger import clock

    try:
        with progress("reading the recording"):
            history = read(path, installed_registry())
    except OSError as error:
        raise cannot_read(path, error) from None
    before, after = _sides(old or with_default_profile([*history.profiles.values()]), new)
    with progress("playing the old policy") as told:
        first = rerun(history, before, told)
    with progress("playing the new policy") as told:
        second = rerun(history, after, told)
    comparison = compared(first, second)
    about = f"{len(history.pods):,} pods over {clock(history.end - history.start)} of recording {path.name}"
    notes = list(history.notes)
    if first.left_out:
        notes.append(f"{first.left_out:,} pods stood on nodes that were never seen; they are left out")
    return Plan(about, _named(before), _named(after), comparison, notes=notes)


def _of_scenario(path: Path, old: Sequence[Profile] | None, new: Sequence[Profile]) -> Plan:
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.plan.comparison import Plan, compared
    from policyengine.plan.rerun import Rerun
    from policyengine.trials.ledger import clock
    from policyengine.trials.simulation import Simulation

    registry = installed_registry()
    first = Simulation(path, old, registry=registry)
    before, after = _sides(first.profiles, new)
    second = Simulation(path, after, registry=registry)
    with progress("playing the old policy") as told:
        first.run(told)
    with progress("playing the new policy") as told:
        second.run(told)
    runs = [Rerun(one.play.ledger, one.play.at) for one in (first, second)]
    comparison = compared(runs[0], runs[1])
    about = f"{len(first.play.ledger.pods):,} pods over {clock(first.play.at)} of scenario {path.name}"
    return Plan(about, _named(before), _named(after), comparison)


def _of_cluster(
    path: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    old: Sequence[Profile] | None,
    new: Sequence[Profile],
    now: float | None,
) -> Plan:
    from policyengine.clock import SystemClock
    from policyengine.cluster.kinds import PODS
    from policyengine.commands.explaining.cluster import from_file, from_server
    from policyengine.kube.config import credentials
    from policyengine.plan.comparison import Plan, compared
    from policyengine.plan.snapshot import anew, waiting

    found = from_file(path, old) if path is not None else from_server(credentials.load(kubeconfig, context), old)
    moment = now if now is not None else SystemClock().now()
    before, after = _sides(found.profiles, new)
    with progress("playing the pods that wait"):
        snapshot = waiting(found.objects, before, after, moment)
    with progress("filling the cluster anew"):
        first, second = (anew(found.objects, profiles, moment) for profiles in (before, after))
    count = sum(one.kind == PODS.kind for one in found.objects)
    comparison = compared(first, second)
    about = f"{count:,} pods of {found.where}, filled anew in the order of creation"
    return Plan(about, _named(before), _named(after), comparison, snapshot, found.notes)


def _sides(old: Sequence[Profile], new: Sequence[Profile]) -> tuple[list[Profile], list[Profile]]:
    """What serves before and after: NEW takes the place of what serves its scheduler names."""
    names = {profile.scheduler_name for profile in old}
    strange = [profile for profile in new if profile.scheduler_name not in names]
    if strange:
        one = strange[0]
        raise UnusableInput(
            f"policy `{one.name}` serves scheduler `{one.scheduler_name}`, which nobody serves today; there are "
            f"{', '.join(sorted(names))}: give OLD and NEW for the same name"
        )
    replaced: Mapping[str, Profile] = {profile.scheduler_name: profile for profile in new}
    return list(old), [replaced.get(profile.scheduler_name, profile) for profile in old]


def _named(profiles: Sequence[Profile]) -> str:
    return ", ".join(f"{profile.name} {profile.policy_hash[:12]}" for profile in profiles)
