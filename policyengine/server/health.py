"""Whether this replica is alive and ready, check by check, in the words of Kubernetes' own `/readyz?verbose`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from policyengine.clock import Clock
from policyengine.kube.scheduling import Scheduler

PATIENCE = 30.0
"""Seconds for which a watch may fail before what is known counts as stale."""


@dataclass(frozen=True)
class Check:
    """One thing that must hold. `problem` says why it does not, or nothing."""

    name: str
    problem: Callable[[], str]


def checks(scheduler: Scheduler, clock: Clock) -> tuple[list[Check], list[Check]]:
    """(what `/livez` asks, what `/readyz` asks besides)."""

    def leads() -> str:
        elector = scheduler.elector
        lost = elector is not None and elector.elected.is_set() and not elector.holds()
        return "the lease was not renewed in time" if lost else ""

    def caches() -> str:
        return "" if scheduler.runner.synced.is_set() else "the first lists are not in"

    def policies() -> str:
        return "" if scheduler.reloader.settled.is_set() else "the policies were not read yet"

    def watches() -> str:
        now = clock.monotonic()
        stale = [
            reflector.resource.plural
            for reflector in scheduler.runner.reflectors
            if reflector.failing_since is not None and now - reflector.failing_since > PATIENCE
        ]
        return f"no list or watch of {', '.join(stale)} succeeds" if stale else ""

    return [Check("leaderElection", leads)], [
        Check("caches", caches),
        Check("policies", policies),
        Check("watches", watches),
    ]


def verdict(asked: list[Check], verbose: bool) -> tuple[bool, str]:
    """Whether all hold, and the text that says so."""
    found = [(check.name, check.problem()) for check in asked]
    good = not any(problem for _, problem in found)
    if good and not verbose:
        return True, "ok"
    lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in found]
    return good, "\n".join([*lines, "check passed" if good else "check failed"]) + "\n"
