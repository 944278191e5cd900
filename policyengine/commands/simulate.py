"""`policyengine simulate`: a scenario on virtual time, without a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyengine.commands import options
from policyengine.commands.policies import given_profiles
from policyengine.commands.progress import progress
from policyengine.control_characters import escaped
from policyengine.seldom_collected import collect_seldom
from policyengine.version import __version__

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile
    from policyengine.plan.history import History
    from policyengine.recording.redaction import Redaction
    from policyengine.scheduler.messages import DrivenCore
    from policyengine.scheduler.state import SchedulerState

FAILED, UNUSABLE = 1, 2


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path), metavar="[SCENARIO]", required=False)
@options.file_option("--cluster", help="Begin with the cluster in this dump, as for `explain`; - reads standard input.")
@click.option(
    "--recording", type=click.Path(path_type=Path), metavar="RECORDING", help="With what came and went in a recording."
)
@options.output_option("text", "json")
@options.policy_option(" Instead of the scenario's.")
@options.param_option
@click.option("--seed", type=int, metavar="N", help="Draw from this seed instead of the scenario's.")
@click.option("--seeds", type=click.IntRange(2, 100_000), metavar="N", help="Play N seeds, and tell distributions.")
@options.jobs_option
@options.file_option("--svg", "svg_path", help="Draw load and queue.")
@options.recording_options
@options.schema_option("policyengine.trials.simulation", "scenarios")
def simulate(
    scenario: Path | None,
    cluster: Path | None,
    recording: Path | None,
    output: str,
    paths: tuple[Path, ...],
    params: dict[str, str],
    seed: int | None,
    seeds: int | None,
    jobs: int,
    svg_path: Path | None,
    record_path: Path | None,
    redact: bool,
    redact_key: Path | None,
) -> None:
    """Play a SCENARIO: nodes and pods that come, change and go, on virtual time, scheduled by its policies.

    With --cluster or --recording it begins with the nodes, pods and objects of a dump, or they come and go as they did,
    and what the scenario brings comes on top; without a scenario nothing does. The policies are those of --policy, else
    the scenario's, else those that served there. With --seeds the scenario is played with this seed and the next ones,
    and each figure of `plan` is told as it is distributed over them.

    Exit codes: 0 everything the scenario expects came true; 1 something did not; 2 the scenario or a policy cannot be
    used, or the recording is damaged.
    """
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.trials.simulation import Simulation

    if scenario is None and cluster is None and recording is None:
        raise click.UsageError("give a SCENARIO, --cluster or --recording")
    if cluster is not None and recording is not None:
        raise click.UsageError("give one of --cluster and --recording")
    collect_seldom()
    redaction = options.recorded_redaction(record_path, redact, redact_key)
    profiles = given_profiles(paths, params)
    if seeds is not None:
        if scenario is None or cluster or recording or svg_path or record_path:
            raise click.UsageError("--seeds goes with a SCENARIO alone: no --cluster, --recording, --svg or --record")
        from policyengine.commands import sweeping

        # The first seed; and it can be played at all.
        first = Simulation(scenario, profiles, seed=seed, registry=installed_registry()).seed
        sys.exit(0 if sweeping.seeds(scenario, profiles, first, seeds, jobs, output) else FAILED)
    options.refuse_given("--seeds", "--jobs")
    played, profiles, is_damaged, more = _begun(scenario, cluster, recording, profiles)
    with _recording(record_path, redaction) as driven:
        simulation = Simulation(played, profiles, seed=seed, registry=installed_registry(), driven=driven, **more)
        with progress("simulating") as told:
            outcome = simulation.run(told)
    if svg_path is not None:
        from policyengine.commands.reports.simulate_picture import svg

        try:
            svg_path.write_text(svg(outcome), encoding="utf-8")
        except OSError as error:
            raise options.cannot_write(svg_path, error) from None
    if output == "json":
        click.echo(json.dumps(outcome.json(), indent=2))
    else:
        from policyengine.commands.reports.simulate_table import show

        show(outcome)
    sys.exit(FAILED if not outcome.passed else UNUSABLE if is_damaged else 0)


def _begun(
    scenario: Path | None, cluster: Path | None, recording: Path | None, given: list[Profile] | None
) -> tuple[Path | dict[str, Any], list[Profile] | None, bool, dict[str, Any]]:
    """The scenario, the policies that take the place of its own, whether only a part of a recording could be read, and
    what else a `Simulation` is made with."""
    if cluster is not None:
        history, served = _as_it_is(cluster, given)
    elif recording is not None:
        history, served = _as_it_was(recording)
    else:
        assert scenario is not None
        return scenario, given, False, {}
    from policyengine.plan.rerun import PastPlay
    from policyengine.plugins.registry import default_profile
    from policyengine.trials.simulation import Written

    for note in history.notes:
        click.echo(f"note: {escaped(note)}", err=True)
    if given is None and not (scenario and Written(scenario).scenario.policies):
        given = served or [default_profile()]
    length = {"duration": history.end - history.start} if recording and history.end > history.start else {}
    name = str((cluster or recording or Path()).name)
    played = scenario or {"name": name, "nodes": [], "pods": [], **length}
    return played, given, history.is_damaged, {"made": partial(PastPlay, history)}


def _as_it_is(path: Path, given: list[Profile] | None) -> tuple[History, list[Profile]]:
    """The cluster of a dump, at the time at which the newest of it was created."""
    from policyengine.cluster.pod_info import seconds_or_none
    from policyengine.commands.explaining.explained_cluster import from_file
    from policyengine.plan.snapshot import history_of, once_each

    found = from_file(path, given)
    objects, notes = once_each(found.objects)
    for note in (*found.notes, *notes):
        click.echo(f"note: {escaped(note)}", err=True)
    created = (seconds_or_none(one.object.metadata.creation_timestamp) for one in objects)
    now = max((seconds for seconds in created if seconds is not None), default=0.0)
    return history_of(objects, now, anew=False), list(found.profiles)


def _as_it_was(path: Path) -> tuple[History, list[Profile]]:
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.plan.history import read

    try:
        with progress("reading the recording"):
            history = read(path, installed_registry())
    except OSError as error:
        raise options.cannot_read(path, error) from None
    return history, list(history.profiles.values())


@contextmanager
def _recording(path: Path | None, redaction: Redaction | None) -> Iterator[Callable[[SchedulerState], DrivenCore]]:
    """What gives the core that is driven: one that is recorded where that is wanted."""
    if path is None:
        yield lambda state: state
        return
    from policyengine.recording.directory import DirectoryInUse
    from policyengine.recording.recorder import DirectRecording

    try:
        recording = DirectRecording(path, __version__, "simulation", redaction)
    except DirectoryInUse as error:
        raise options.UnusableInput(str(error)) from None
    except OSError as error:
        raise options.cannot_write(path, error) from None
    try:
        try:
            yield recording.recorded
        finally:
            recording.close()
    except OSError as error:
        raise options.cannot_write(path, error) from None
