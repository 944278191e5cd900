"""`policyengine replay`: what a scheduler was told is told to another, which has to decide the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyengine.cluster.objects import format_moment
from policyengine.commands import options
from policyengine.commands.progress import progress
from policyengine.control_characters import escaped

if TYPE_CHECKING:
    from policyengine.recording.replay import Difference, Replay
    from policyengine.scheduler.state import SchedulerState

DIFFERS, UNUSABLE = 1, 2
QUESTIONS = ("queue", "quota", "rollout", "explain")
SHOWN = 8
"""Lines of a pod's timeline."""


@click.command()
@click.argument("recording", type=click.Path(path_type=Path), metavar="RECORDING")
@click.argument("question", nargs=-1, metavar="[queue | quota | rollout | explain POD]")
@click.option("--at", type=options.Moment(), metavar="TIME", help="Play up to this moment, as 2026-01-05T18:30:00Z.")
@options.file_option(
    "--shrink", "small", help="Write the fewest messages that still show the difference, as a recording."
)
@click.option("--condition", metavar="EXPRESSION", help="For --shrink: what is to be shown, as `waiting > 2`.")
@options.schema_option("policyengine.recording.json_schema", "a recording's entries")
@options.output_option("text", "json")
def replay(
    recording: Path, question: tuple[str, ...], at: float | None, small: Path | None, condition: str | None, output: str
) -> None:
    """Play a RECORDING, a directory or one of its files: a core is told what the recorded one was, at the same times.

    Whether it asks for the same is the answer; the first difference is shown with both. With a question, the cluster as
    the scheduler saw it at that moment, or at the end, is shown instead.

    Exit codes: 0 everything was the same; 1 something differs: what is answered is how it was then; 2 the recording is
    damaged, or none.
    """
    if question and (question[0] not in QUESTIONS or len(question) != (2 if question[0] == "explain" else 1)):
        raise click.UsageError("ask `queue`, `quota`, `rollout` or `explain POD`")
    if small is not None and question:
        raise click.UsageError("--shrink writes a recording, and takes no question")
    if condition is not None and small is None:
        raise click.UsageError("--condition is for --shrink")
    if small is not None:
        options.refuse_given("what is printed, and --shrink writes a file", "--output")
        _shrink(recording, at, small, condition)
        return
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.recording.replay import Replay

    try:
        played = Replay(recording, registry=installed_registry())
        with progress("replaying"):
            played.play(at)
    except OSError as error:
        raise options.cannot_read(recording, error) from None
    for note in played.notes:
        click.echo(f"note: {escaped(note)}", err=True)
    if not question:
        _tell(played, output)
    else:
        if played.difference is not None:
            first = next(_lines(played, played.difference))
            click.echo(f"note: this version decides otherwise, and stops there: {first}", err=True)
        _answer(played.state, played.now, question, output)
    sys.exit(DIFFERS if played.difference else UNUSABLE if played.notes and not played.cut_only else 0)


def _shrink(recording: Path, at: float | None, small: Path, condition: str | None) -> None:
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.recording.shrink import NothingToShow, Shrinking, Told

    try:
        told = Told.of(recording, installed_registry(), at)
        shows = told.difference() if condition is None else told.condition(condition)
    except OSError as error:
        raise options.cannot_read(recording, error) from None
    except NothingToShow as error:
        raise options.UnusableInput(str(error)) from None
    with progress("shrinking") as how_far:
        shrinking = Shrinking(told, shows, how_far)
        kept = shrinking.fewest()
    try:
        told.write(kept, small, differs=condition is None)
    except OSError as error:
        raise options.cannot_write(small, error) from None
    enough = "" if shrinking.left > 0 else "; ended early: shrinking that file may leave fewer"
    click.echo(f"{len(kept):,} of {len(told.lines):,} messages in {small}{enough}")


def _answer(state: SchedulerState, now: float, question: tuple[str, ...], output: str) -> None:
    from policyengine.commands.kubectl_tables import show
    from policyengine.server import debug

    match question[0]:
        case "queue":
            show("queue", [debug.queue(state, now)], output)
        case "quota":
            show("quota", [debug.quota(state)], output)
        case "rollout":
            show("rollout", [debug.rollout(state)], output)
        case _:
            _explain(state, question[1], output)


def _explain(state: SchedulerState, pod: str, output: str) -> None:
    from policyengine.commands.explaining.live_answers import named, show
    from policyengine.server import debug

    namespace, name = named(pod, "default")
    try:
        page = debug.pod_timeline(state, namespace, name)
    except KeyError:
        raise options.UnusableInput(f"there was no pod {namespace}/{name} at that moment") from None
    if output == "json":
        click.echo(json.dumps(page, indent=2))
    else:
        show(page)


def _tell(played: Replay, output: str) -> None:
    difference = played.difference
    if output == "json":
        found: dict[str, Any] = {
            "messages": played.messages,
            "digest": played.digest,
            "exact": played.exact,
            "ended": format_moment(played.now),
            "notes": played.notes,
            "difference": None if difference is None else list(_lines(played, difference)),
        }
        click.echo(json.dumps(found, indent=2))
        return
    if difference is not None:
        click.echo("\n".join(_lines(played, difference)))
        return
    what = "played again, every action the same" if played.exact else "played; nothing to compare with"
    click.echo(f"{played.messages:,} messages to {format_moment(played.now)}: {what}; digest {played.digest}")


def _lines(played: Replay, difference: Difference) -> Iterator[str]:
    """The difference as lines."""
    from msgspec import to_builtins

    step = difference.step
    if step is None:
        yield escaped(f"differs after message {played.messages:,} at {format_moment(played.now)}: {difference.note}")
        return
    yield f"differs at message {step.number:,}, {type(step.message).__name__}, at {format_moment(step.now)}"
    mine: list[tuple[str, dict[str, Any]]] = [(type(one).__name__, to_builtins(one)) for one in step.actions]
    for word, actions, others in (("recorded", difference.recorded, mine), ("now", mine, difference.recorded)):
        only = [one for one in actions if one not in others]
        yield f"{word}:"
        yield from (f"  {escaped(_action(*one))}" for one in only)
        if not only:
            yield "  nothing" if not actions else "  the same, in another order"
    for uid in dict.fromkeys(fields.get("uid", "") for _, fields in [*mine, *difference.recorded]):
        lines = played.state.timeline(uid)[-SHOWN:]
        if lines:
            yield f"what happened to the pod {uid}, now:"
            yield from (f"  {format_moment(line.at)}  {escaped(str(line))}" for line in lines)


def _action(name: str, fields: dict[str, Any]) -> str:
    pod = f"{fields['namespace']}/{fields['name']}" if "namespace" in fields else fields.get("uid", "")
    if name == "Bind":
        return f"bind {pod} to {fields['node']} by policy {fields['policy_hash'][:12]}"
    rest = {key: value for key, value in fields.items() if key not in ("uid", "namespace", "name") and value}
    return f"{name} {pod}: {json.dumps(rest, default=str)}"
