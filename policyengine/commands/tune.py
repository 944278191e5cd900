"""`policyengine tune`: values of params, and weights, that do better on recorded days than the policy's own."""

from __future__ import annotations

import fcntl
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from policyengine.commands import options
from policyengine.commands.progress import Stages

if TYPE_CHECKING:
    from policyengine.language.diagnostics import Source
    from policyengine.tuning.judging import Job, Judges, Workload
    from policyengine.tuning.session import Found
    from policyengine.tuning.tuned_policy import Subject

NO_GAIN: Final = 1
STUDY, LOCK, PARAMS, PATCH, RESULT, PAGE = (
    "study.log",
    "lock",
    "params.yaml",
    "policy.patch",
    "result.json",
    "index.html",
)
_RECORDING: Final = click.Path(path_type=Path)


@click.command()
@click.argument("policy", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="POLICY…")
@click.option("--recording", "recordings", type=_RECORDING, multiple=True, metavar="RECORDING", help="To train on.")
@click.option(
    "--held-out",
    type=_RECORDING,
    multiple=True,
    metavar="RECORDING",
    help="To judge the result on.  [default: the last third of --recording]",
)
@options.file_option("--scenario", "scenario", help="A scenario of `simulate`, in the place of recordings.")
@click.option("--seeds", type=click.IntRange(1, 10_000), default=10, help="Of it, to train on.")
@click.option("--held-out-seeds", type=click.IntRange(0, 10_000), default=10, help="The next ones.")
@click.option(
    "--objective",
    "objectives",
    multiple=True,
    required=True,
    metavar="EXPRESSION",
    help="A figure of `plan`, as `p99(wait)`; or `minimize …` or `maximize …`; may be repeated.",
)
@click.option(
    "--constraint", "constraints", multiple=True, metavar="EXPRESSION", help="Has to be true: `evictions <= old`."
)
@click.option("--vary", multiple=True, metavar="NAME", help="A param, or weight:RULE.  [default: all that can be]")
@options.param_option
@click.option("--trials", type=click.IntRange(1, 1_000_000), default=100, help="Candidates.")
@click.option("--points", type=click.IntRange(0, 100), default=5, help="Of each, alone; 0: none.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the search.")
@options.jobs_option
@click.option("--ray", "ray_address", metavar="ADDRESS", help="Play on a Ray cluster; `local` starts one here.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER", help="[default: tuned-POLICY]"
)
@options.output_option("text", "json")
def tune(
    policy: tuple[Path, ...],
    recordings: tuple[Path, ...],
    held_out: tuple[Path, ...],
    scenario: Path | None,
    seeds: int,
    held_out_seeds: int,
    objectives: tuple[str, ...],
    constraints: tuple[str, ...],
    vary: tuple[str, ...],
    params: dict[str, str],
    trials: int,
    points: int,
    seed: int,
    jobs: int,
    ray_address: str | None,
    out: Path | None,
    output: str,
) -> None:
    """Search the ranges and values that POLICY declares, and its weights, for what does best on recordings or on the
    seeds of a scenario; judge the result on others.

    FOLDER gets params.yaml, policy.patch, index.html, result.json and study.log; the same command again, with more
    --trials, goes on with the study that is there.

    Exit codes: 0; 1 nothing better was found; 2 something cannot be used.
    """
    from policyengine.commands.console import print_tables
    from policyengine.commands.reports.tune_report import head, plain, tables
    from policyengine.plan.rerun import NotServed
    from policyengine.tuning.dimensions import NothingToTune, chosen
    from policyengine.tuning.judging import Job, judge
    from policyengine.tuning.objective import WrongObjective, objective
    from policyengine.tuning.search import Study, StudyUnusable
    from policyengine.tuning.session import NothingToChoose, Session
    from policyengine.tuning.workers import Processes, Ray, WorkersUnusable

    try:
        training, kept = _workloads(recordings, held_out, scenario, seeds, held_out_seeds)
        job = Job(_subject(policy, params), [*training, *kept], list(map(objective, objectives)), constraints)
        dimensions = chosen(job.subject.dimensions, vary, job.subject.policy.params)
        out = out or Path(f"tuned-{re.sub(r'[^A-Za-z0-9_-]', '_', job.subject.policy.name)}")
        with ExitStack() as stack:
            path = stack.enter_context(_own(out))
            study = Study(dimensions, job.objectives, seed, _about(job, len(training), dimensions), path)
            stages = stack.enter_context(Stages())
            work = partial(judge, job)
            workers: Judges = Ray(work, ray_address) if ray_address is not None else Processes(work, jobs)
            stack.enter_context(workers)
            found = Session(job, dimensions, study, workers, len(training), stages.told).run(trials, points)
    except (NothingToTune, NotServed, WrongObjective, StudyUnusable, NothingToChoose, WorkersUnusable) as error:
        raise options.UnusableInput(str(error)) from None
    except KeyboardInterrupt:
        click.echo(f"stopped: what was finished is in `{out}`; the same command goes on with it", err=True)
        sys.exit(130)
    notes = [*found.notes, *_written(out, job.subject, found)]
    if not kept:
        notes.insert(0, "nothing was held out: what is told of the gain is of what the values were chosen by")
    if output == "json":
        click.echo(json.dumps({**plain(found), "notes": notes}, indent=2))
    else:
        notes.append(f"written to `{out}`: {PARAMS}, {PATCH}, {PAGE}, {RESULT}, {STUDY}")
        print_tables(head(found), tables(found), notes)
    sys.exit(0 if found.is_better else NO_GAIN)


def _workloads(
    recordings: Sequence[Path], held_out: Sequence[Path], scenario: Path | None, seeds: int, held_out_seeds: int
) -> tuple[list[Workload], list[Workload]]:
    """What is trained on, and what is held out."""
    from policyengine.tuning.judging import Workload

    if (scenario is None) == (not recordings):
        raise click.UsageError("give --recording, once or more, or --scenario")
    if held_out and not recordings:
        raise click.UsageError("--held-out goes with --recording; of a scenario --held-out-seeds are held out")
    if scenario is not None:
        every = [Workload(str(scenario), seed) for seed in range(1, seeds + held_out_seeds + 1)]
        return every[:seeds], every[seeds:]
    options.refuse_given("a scenario", "--seeds", "--held-out-seeds")
    training, kept = ([Workload(str(path)) for path in paths] for paths in (recordings, held_out))
    if not kept:
        first = len(training) - (len(training) // 3 or (len(training) > 1))
        training, kept = training[:first], training[first:]
    trained = {Path(one.path).resolve() for one in training}
    if both := [one for one in kept if Path(one.path).resolve() in trained]:
        raise click.UsageError(f"`{both[0]}` is trained on and held out; a gain there proves nothing")
    return training, kept


def _subject(paths: Sequence[Path], params: dict[str, str]) -> Subject:
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.commands.policies import load_profiles
    from policyengine.language.diagnostics import Source
    from policyengine.tuning.dimensions import NothingToTune
    from policyengine.tuning.tuned_policy import Subject

    profiles = load_profiles(paths, params, one_a_scheduler=False)
    if len(profiles) != 1:
        raise NothingToTune(f"there are {len(profiles)} policies; one is tuned at a time")
    loaded = profiles[0].loaded_from
    sources = tuple(Source(file, text) for file, text in loaded.files.items())
    return Subject(sources, loaded.params, installed_registry)


def _about(job: Job, trained: int, dimensions: Sequence[Any]) -> dict[str, Any]:
    texts = "\0".join(f"{one.file}\0{one.text}" for one in job.subject.sources)
    digests = {path: _digest(Path(path)) for path in {one.path for one in job.workloads}}
    played = [f"{one} {digests[one.path]}" for one in job.workloads[:trained]]
    return {
        "policy": sha256(f"{texts}\0{json.dumps(dict(job.subject.given), default=str)}".encode()).hexdigest(),
        "workloads": played,
        "constraints": list(job.constraints),
        "dimensions": [one.name for one in dimensions],
    }


def _digest(path: Path) -> str:
    """Of what is played."""
    digest = sha256()
    try:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.name != "lock":
                digest.update(file.read_bytes())
    except OSError as error:
        raise options.cannot_read(path, error) from None
    return digest.hexdigest()[:16]


@contextmanager
def _own(out: Path) -> Iterator[Path]:
    """The folder is made and nobody else's; its study file."""
    from policyengine.tuning.search import StudyUnusable

    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / LOCK).open("w")
    except OSError as error:
        raise options.cannot_write(out, error) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyUnusable(f"another process searches in `{out}`") from None
        yield out / STUDY


def _written(out: Path, subject: Subject, found: Found) -> list[str]:
    """Write the result; what is to be said of it."""
    import yaml

    from policyengine.commands.reports.tune_report import page, plain
    from policyengine.tuning.dimensions import WEIGHT

    values = found.best.values
    params = {name: value for name, value in values.items() if not name.startswith(WEIGHT)}
    notes = _notes(subject, subject.patched(values))
    if len(params) < len(values):
        notes.append(f"{PARAMS} holds no weights: they are changed by {PATCH}")
    texts = {
        PARAMS: yaml.safe_dump(params, sort_keys=False, allow_unicode=True) if params else "{}\n",
        PATCH: subject.patch(values),
        RESULT: json.dumps(plain(found), indent=2) + "\n",
        PAGE: page(found, subject.policy.name, notes),
    }
    try:
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise options.cannot_write(out, error) from None
    return notes


def _notes(subject: Subject, patched: Sequence[Source]) -> list[str]:
    """What lint finds that it did not find before, and tests that fail now."""
    from policyengine.commands.linting.files import linted
    from policyengine.language.policy_text import PolicyText
    from policyengine.policy_compiler import checked_files
    from policyengine.trials.policy_test import failed_tests

    before, after = (
        [
            finding.message
            for one in linted([PolicyText(source, source) for source in texts], {})
            for finding in one.findings
        ]
        for texts in (subject.sources, patched)
    )
    notes = [f"lint says of the changed policy: {message}" for message in after if message not in before]
    policies, _ = checked_files(patched, subject.registry)
    return notes + [f"of the changed policy: {one.message}" for one in failed_tests(policies, subject.registry)]
