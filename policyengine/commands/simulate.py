"""`policyengine simulate`: a scenario on virtual time, without a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyengine.commands.options import (
    UnusableInput,
    cannot_write,
    output_option,
    param_option,
    recording_options,
    redaction_of,
)
from policyengine.commands.policies import load_profiles
from policyengine.commands.progress import progress
from policyengine.version import __version__

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile
    from policyengine.recording.redaction import Redaction
    from policyengine.scheduler.driven import DrivenCore
    from policyengine.scheduler.state import SchedulerState

FAILED = 1


def _print_schema(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from policyengine.trials.simulation import schema

    click.echo(json.dumps(schema(), indent=2))
    context.exit()


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO")
@output_option("text", "json")
@click.option(
    "--policy",
    "paths",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Play it with this policy instead of the scenario's; a file or a folder, may be repeated.",
)
@param_option
@click.option("--seed", type=int, metavar="N", help="Draw from this seed instead of the scenario's.")
@click.option("--svg", "svg_path", type=click.Path(path_type=Path), metavar="FILE", help="Draw load and queue.")
@recording_options
@click.option(
    "--schema",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_schema,
    help="Print the JSON schema of scenarios and exit.",
)
def simulate(
    scenario: Path,
    output: str,
    paths: tuple[Path, ...],
    params: dict[str, str],
    seed: int | None,
    svg_path: Path | None,
    record_path: Path | None,
    redact: bool,
    redact_key: Path | None,
) -> None:
    """Play a SCENARIO: nodes and pods that come, change and go, on virtual time, scheduled by its policies.

    Exit codes: 0 everything the scenario expects came true; 1 something did not; 2 the scenario or a policy cannot be
    used.
    """
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.trials.simulation import Simulation

    profiles = _given(paths, params)
    with _recording(record_path, redaction_of(redact, redact_key)) as driven:
        simulation = Simulation(scenario, profiles, seed=seed, registry=installed_registry(), driven=driven)
        with progress("simulating") as told:
            outcome = simulation.run(told)
    if svg_path is not None:
        from policyengine.commands.simulate_picture import svg

        _write(svg_path, svg(outcome))
    if output == "json":
        click.echo(json.dumps(outcome.json(), indent=2))
    else:
        from policyengine.commands.simulate_table import show

        show(outcome)
    sys.exit(0 if outcome.passed else FAILED)


@contextmanager
def _recording(path: Path | None, redaction: Redaction | None) -> Iterator[Callable[[SchedulerState], DrivenCore]]:
    """What gives the core that is driven: one that is recorded where that is wanted."""
    if path is None:
        yield lambda state: state
        return
    from policyengine.recording.direct import DirectRecording
    from policyengine.recording.directory import DirectoryInUse

    try:
        recording = DirectRecording(path, __version__, "simulation", redaction)
    except DirectoryInUse as error:
        raise UnusableInput(str(error)) from None
    except OSError as error:
        raise cannot_write(path, error) from None
    try:
        yield recording.recorded
    finally:
        try:
            recording.close()
        except OSError as error:
            raise cannot_write(path, error) from None


def _given(paths: Sequence[Path], params: dict[str, str]) -> list[Profile] | None:
    """The policies of the command line; None where it names none."""
    if not paths:
        if params:
            raise click.UsageError("--param is for policies given with --policy")
        return None
    profiles = load_profiles(paths, params)
    if not profiles:
        raise UnusableInput(f"`{paths[0]}` holds no policy")
    return profiles


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from None
