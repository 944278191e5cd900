"""Many plays in the place of one: `simulate --seeds`, and `plan` of several recordings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from policyengine.commands.options import UnusableInput, cannot_read
from policyengine.commands.progress import progress
from policyengine.trials.ledger import clock

if TYPE_CHECKING:
    from policyengine.framework.profile import LoadedFrom, Profile
    from policyengine.plan.tables import Row, Titled
    from policyengine.tuning.sweep import Distribution, Pair

HEADS: Final = ("mean", "95 %", "least", "median", "p90", "most")
SHOWN: Final = 10
SHARES: Final = ("utilisation", "allocated", "fragmentation", "imbalance", "spread", "quotas", "share")
"""Figures that are shares of a whole."""


def seeds(path: Path, given: Sequence[Profile] | None, first: int, count: int, jobs: int, output: str) -> bool:
    """Play a scenario with so many seeds, and tell; whether all that is expected came true with each."""
    from policyengine.commands.console import print_tables
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.tuning.sweep import Seeds, distributions

    asked = range(first, first + count)
    runs = _played(Seeds(str(path), _loaded(given), installed_registry), list(asked), jobs, "seeds")
    found = distributions([figures for figures, _ in runs])
    wrong = {seed: [one for one in verdicts if not one.passed] for seed, (_, verdicts) in zip(asked, runs, strict=True)}
    failed = [seed for seed in asked if wrong[seed]]
    if output == "json":
        told = [
            {"seed": seed, "figures": figures, "expectations": [asdict(one) for one in verdicts]}
            for seed, (figures, verdicts) in zip(asked, runs, strict=True)
        ]
        click.echo(json.dumps({"runs": told, "figures": {name: one.json for name, one in found.items()}}, indent=2))
        return not failed
    came = f"what is expected came true with {count - len(failed)} of them" if runs[0][1] else "nothing is expected"
    expected: list[Row] = [(str(seed), one.text, one.found) for seed in failed for one in wrong[seed]]
    tables: list[Titled] = [("Figures", ("", *HEADS), list(_rows(found)))]
    if expected:
        more = f", the first {SHOWN} of {len(expected)}" if len(expected) > SHOWN else ""
        tables.append((f"Did not come true{more}", ("seed", "expected", "found"), expected[:SHOWN]))
    print_tables([f"{path.name} with {count} seeds, {asked[0]} to {asked[-1]}: {came}"], tables)
    return not failed


def recordings(
    paths: Sequence[Path],
    old: Sequence[Profile] | None,
    new: Sequence[Profile],
    fail_on: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] | None,
    jobs: int,
    output: str,
) -> tuple[bool, bool]:
    """Play recordings under both policies, and tell; whether `fail_on` is true of any, and whether any is damaged."""
    from policyengine.commands.console import print_tables
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.plan.rerun import NotServed
    from policyengine.tuning.sweep import Recordings, changes

    loaded = _loaded(new)
    assert loaded is not None
    work = Recordings(_loaded(old), loaded, installed_registry)
    try:
        pairs: list[Pair] = _played(work, list(map(str, paths)), jobs, "recordings")
    except NotServed as error:
        raise UnusableInput(f"{error}: give OLD and NEW for the same name") from None
    found = changes(pairs)
    failed = [str(path) for path, one in zip(paths, pairs, strict=True) if fail_on and fail_on(one.old, one.new)]
    is_damaged = any(one.is_damaged for one in pairs)
    if output == "json":
        told = [
            {"recording": str(path), "old": one.old, "new": one.new, "notes": one.notes}
            for path, one in zip(paths, pairs, strict=True)
        ]
        sides = {
            name: dict(zip(("old", "new", "change"), (one.json for one in sides), strict=True))
            for name, sides in found.items()
        }
        click.echo(json.dumps({"runs": told, "figures": sides, "failed": failed}, indent=2))
        return bool(failed), is_damaged
    heads = ("", "old median", "new median", "old p90", "new p90", "change, mean", "95 %")
    notes = [f"{path.name}: {note}" for path, one in zip(paths, pairs, strict=True) for note in one.notes]
    notes += [f"--fail-on is true of {path}" for path in failed]
    table = "Figures", heads, list(_pairs(found))
    print_tables([f"{len(paths)} recordings, each under both policies"], [table], notes)
    return bool(failed), is_damaged


def _loaded(profiles: Sequence[Profile] | None) -> LoadedFrom | None:
    """What the policies of a command line were loaded from, all together."""
    return profiles[0].loaded_from if profiles else None


def _played(work: Callable[[Any], Any], tasks: Sequence[Any], jobs: int, what: str) -> list[Any]:
    from policyengine.tuning.workers import Processes, WorkersUnusable

    found: list[Any] = []
    try:
        with Processes(work, min(jobs, len(tasks))) as workers, progress(f"playing {len(tasks)} {what}") as told:
            for one in workers.answers(tasks):
                found.append(one)
                told(len(found) / len(tasks))
    except WorkersUnusable as error:
        raise UnusableInput(str(error)) from None
    except OSError as error:
        raise cannot_read(Path(str(tasks[len(found)])), error) from None
    return found


def _rows(found: Mapping[str, Distribution]) -> Iterator[Row]:
    """Of figures that are not always 0; of one that is always the same its value alone."""
    for name, one in found.items():
        if one.least < one.most:
            yield name, _shown(name, one.mean), _sure(name, one), *(_shown(name, value) for value in one[2:])
        elif one.most:
            yield name, _shown(name, one.mean), "always"


def _pairs(found: Mapping[str, tuple[Distribution, Distribution, Distribution]]) -> Iterator[Row]:
    for name, (old, new, more) in found.items():
        if old.least or old.most or new.least or new.most:
            values = (old.median, new.median, old.p90, new.p90)
            yield name, *(_shown(name, value) for value in values), _more(name, more.mean), _sure(name, more, _more)


def _sure(name: str, one: Distribution, shown: Callable[[str, float], str] | None = None) -> str:
    if one.sure is None:
        return ""
    return " to ".join((shown or _shown)(name, value) for value in (one.sure.low, one.sure.high))


def _more(name: str, value: float) -> str:
    return ("+" if value > 0 else "") + _shown(name, value)


def _shown(name: str, value: float) -> str:
    """Waits as a clock shows them, shares in per cent."""
    if name.startswith("wait."):
        return f"-{clock(-value)}" if value < 0 else clock(value)
    return f"{value:.1%}" if name.startswith(SHARES) else f"{value:,.6g}"
