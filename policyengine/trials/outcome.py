"""What came of a run: whether its expectations came true, from the ledger alone, and the JSON of `simulate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from policyengine import quantity
from policyengine.framework.profile import Profile
from policyengine.trials.ledger import Ledger, NodeRecord, PodRecord, clock, mean_share, percentile, stretches
from policyengine.trials.scenario import Clause, Json, Scenario, ScenarioError
from policyengine.trials.scenario_changes import matching


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation, whether it came true, and what was found."""

    text: str
    passed: bool
    found: str


class Run:
    """A run that is over: what expectations look at."""

    def __init__(self, ledger: Ledger, end: float) -> None:
        self.ledger = ledger
        self.end = end

    def pods(self, pattern: str) -> list[PodRecord]:
        """The pods a pattern means, in the order they came."""
        return [one for one in self.ledger.pods.values() if matching(pattern, (one.name,))]


def verdicts(scenario: Scenario, ledger: Ledger, end: float) -> list[Verdict]:
    """Every expectation's, in order. Raises `ScenarioError` where one cannot be told."""
    run = Run(ledger, end)
    return [_verdict(run, one) for one in scenario.expect]


def _verdict(run: Run, expectation: Clause) -> Verdict:
    said = expectation.said
    text = _worded(said)
    for key in ("pods", "before"):
        if key in said and not run.pods(said[key]):
            return Verdict(text, False, f"no pod is called `{said[key]}`")
    try:
        passed, found = _CHECKS[expectation.what](run, said)
    except quantity.QuantityError as error:
        raise ScenarioError(str(error), expectation.place) from None
    return Verdict(text, passed, found)


def _worded(said: Json) -> str:
    """`pods web-*, boundWithin 5min`."""
    return ", ".join(f"{key} {_value(key, value)}" for key, value in said.items())


def _value(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{inner} {_value(inner if key == 'waited' else '', one)}" for inner, one in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clock(value) if isinstance(value, float) and not key.startswith("at") else str(value)


_Answer = tuple[bool, str]


def _all(pods: Iterable[PodRecord], wrong: Callable[[PodRecord], str]) -> _Answer:
    """Whether nothing is wrong with any; what is wrong with the first few, else how many there are."""
    pods = list(pods)
    told = [text for text in map(wrong, pods) if text]
    if told:
        more = f", and {len(told) - 2} more" if len(told) > 2 else ""
        return False, "; ".join(told[:2]) + more
    return True, f"{len(pods)} pod{'s' * (len(pods) != 1)}"


def _all_bound(run: Run, said: Json, wrong: Callable[[PodRecord], str]) -> _Answer:
    """Whether every pod is bound, and nothing is wrong with it."""

    def amiss(pod: PodRecord) -> str:
        if pod.bound is not None:
            return wrong(pod)
        return f"{pod.name} was never bound" + (f": {pod.told}" if pod.told else "")

    return _all(run.pods(said["pods"]), amiss)


def _on(run: Run, said: Json) -> _Answer:
    return _all_bound(
        run, said, lambda pod: "" if fnmatchcase(pod.node, said["on"]) else f"{pod.name} was bound to {pod.node}"
    )


def _before(run: Run, said: Json) -> _Answer:
    others = run.pods(said["before"])
    first = min((one for one in others if one.bound is not None), key=lambda one: one.order, default=None)

    def wrong(pod: PodRecord) -> str:
        return f"{first.name} was bound before {pod.name}" if first and first.order < pod.order else ""

    return _all_bound(run, said, wrong)


def _bound_in_time(run: Run, said: Json) -> _Answer:
    """`boundWithin` counts from the pod's creation, `boundBy` from the start."""

    def wrong(pod: PodRecord) -> str:
        took = (pod.waited if "boundWithin" in said else pod.bound) or 0.0
        limit = said["boundWithin"] if "boundWithin" in said else said["boundBy"]
        return f"{pod.name} was bound after {clock(took)}" if took > limit else ""

    return _all_bound(run, said, wrong)


def _pending(run: Run, said: Json) -> _Answer:
    def wrong(pod: PodRecord) -> str:
        if (pod.state == "pending") != said["pending"]:
            return f"{pod.name} is {pod.state}" + (f": {pod.told}" if pod.state == "pending" else "")
        because = said.get("because", "")
        return f"{pod.name} waits for another reason: {pod.told}" if because not in pod.told else ""

    return _all(run.pods(said["pods"]), wrong)


def _waited(run: Run, said: Json) -> _Answer:
    """A pod that still waits has waited until the end."""
    pods = run.pods(said["pods"])
    waits = sorted(pod.waited if pod.waited is not None else (pod.ended or run.end) - pod.created for pod in pods)
    found = {key: percentile(waits, key) for key in said["waited"]}
    told = ", ".join(f"{key} {clock(value)}" for key, value in found.items())
    return all(found[key] <= limit for key, limit in said["waited"].items()), told


def _preempted(run: Run, said: Json) -> _Answer:
    gone = [pod for pod in run.pods(said["pods"]) if pod.how == "preempted"]
    names = f": {', '.join(pod.name for pod in gone[:3])}" if gone else ""
    return len(gone) <= said["preempted"], f"{len(gone)} preempted{names}"


def _use(run: Run, said: Json) -> _Answer:
    pods = [pod for pod in run.pods(said["pods"]) if pod.bound is not None]
    peaks = {name: _peak(pods, name) for name in said["use"]}
    limits = {name: quantity.amount(name, value) for name, value in said["use"].items()}
    told = ", ".join(f"at most {shown_amount(name, peak)} {name}" for name, peak in peaks.items())
    return all(peaks[name] <= limits[name] for name in limits), told


def _peak(pods: Sequence[PodRecord], resource: str) -> int:
    """The most that the pods asked for together at one time."""
    steps = [(pod.bound or 0.0, 1, pod.asks.get(resource, 0)) for pod in pods]
    steps += [(pod.ended, 0, -pod.asks.get(resource, 0)) for pod in pods if pod.ended is not None]
    most = held = 0
    for _, _, amount in sorted(steps):
        held += amount
        most = max(most, held)
    return most


def shown_amount(name: str, amount: int) -> str:
    """An amount of a resource as people read it: `250m`, `2Gi`, `3`."""
    if name == "cpu":
        return quantity.format_cpu(amount)
    return quantity.format_bytes(amount) if name in ("memory", "ephemeral-storage") else str(amount)


def _max_pending(run: Run, said: Json) -> _Answer:
    start, end = said.get("from", 0.0), said.get("to", run.end)
    at, most = 0.0, 0
    for sample, until in stretches(run.ledger.samples, run.end):
        if until >= start and sample.at <= end and sample.pending > most:
            at, most = sample.at, sample.pending
    return most <= said["maxPending"], f"at most {most} wait" + (f", first at {clock(at)}" if most else "")


def _utilisation(run: Run, said: Json) -> _Answer:
    share = mean_share(run.ledger.samples, said["utilisation"], said.get("from", 0.0), said.get("to", run.end))
    return said.get("atLeast", 0.0) <= share <= said.get("atMost", 1.0), f"{share:.1%} in the mean"


def _overcommitted(run: Run, said: Json) -> _Answer:
    found = run.ledger.overcommitted
    told = [
        f"{one.pod} raised {one.node} to {shown_amount(one.resource, one.used)} of "
        f"{shown_amount(one.resource, one.room)} "
        f"{one.resource} at {clock(one.at)}"
        for one in found[:2]
    ]
    return not found, "; ".join(told) or f"{len(run.ledger.nodes)} nodes"


def _gangs(run: Run, said: Json) -> _Answer:
    ledger = run.ledger
    told = [
        f"gang {name}: {ledger.gang_bound[name]} bound of {ledger.gang_minimum[name]} at {clock(at)}"
        for name, at in list(ledger.partial.items())[:2]
    ]
    whole = sum(ledger.gang_bound[name] >= least for name, least in ledger.gang_minimum.items())
    return not ledger.partial, "; ".join(told) or f"{whole} of {len(ledger.gang_minimum)} gangs were placed"


_CHECKS: Mapping[str, Callable[[Run, Json], _Answer]] = {
    "on": _on,
    "before": _before,
    "boundWithin": _bound_in_time,
    "boundBy": _bound_in_time,
    "pending": _pending,
    "waited": _waited,
    "preempted": _preempted,
    "use": _use,
    "maxPending": _max_pending,
    "utilisation": _utilisation,
    "overcommitted": _overcommitted,
    "gangs": _gangs,
}
"""What an expectation says -> the function that looks."""

POINTS = 500
"""The most points of the JSON's series."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that is over. `ledger` has everything; `json()` is what the command prints."""

    scenario: Scenario
    seed: int
    profiles: tuple[Profile, ...]
    """Those it began with."""
    end: float
    """Seconds from the start."""
    ledger: Ledger
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether every expectation came true."""
        return all(verdict.passed for verdict in self.verdicts)

    def json(self) -> Json:
        """Plain values only; times in seconds from the start, cpu in millicores, memory in bytes."""
        return {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "seconds": _time(self.end),
            "policies": [
                {"name": one.name, "scheduler": one.scheduler_name, "hash": one.policy_hash} for one in self.profiles
            ],
            "summary": summary(self),
            "expectations": [
                {"expectation": one.text, "passed": one.passed, "found": one.found} for one in self.verdicts
            ],
            "passed": self.passed,
            "pods": [_pod(one) for one in self.ledger.pods.values()],
            "nodes": [_node(one) for one in self.ledger.nodes.values()],
            "series": _series(self),
        }


def summary(outcome: Outcome) -> Json:
    """The run in a few figures."""
    ledger = outcome.ledger
    waits = waits_of(ledger)
    states = Counter(pod.state for pod in ledger.pods.values())
    return {
        "pods": len(ledger.pods),
        "states": dict(sorted(states.items())),
        "bound": len(waits),
        "attempts": sum(pod.attempts for pod in ledger.pods.values()),
        "preempted": ledger.preempted,
        "waited": {which: _time(percentile(waits, which)) for which in ("mean", "p50", "p90", "p99", "max")},
        "mostPending": max((sample.pending for sample in ledger.samples), default=0),
        "utilisation": {
            name: round(mean_share(ledger.samples, name, 0.0, outcome.end), 4) for name in resources(ledger)
        },
    }


def waits_of(ledger: Ledger) -> list[float]:
    """How long the pods that were bound had waited, in order."""
    return sorted(pod.waited for pod in ledger.pods.values() if pod.waited is not None)


def resources(ledger: Ledger) -> list[str]:
    """What pods ask for and nodes have, cpu and memory first."""
    asked = {name for pod in ledger.pods.values() for name in pod.asks} | {"cpu", "memory"}
    return sorted(asked - {"pods"}, key=lambda name: (name not in ("cpu", "memory"), name))


def _pod(pod: PodRecord) -> Json:
    return {
        "pod": pod.name,
        "template": pod.template,
        "created": _time(pod.created),
        "attempts": pod.attempts,
        "bound": _time(pod.bound),
        "node": pod.node or None,
        "waited": _time(pod.waited),
        "ended": _time(pod.ended),
        "state": pod.state,
        "refusedBy": list(pod.refused_by),
        "message": pod.told if pod.bound is None else "",
        "gang": pod.gang or None,
    }


def _node(node: NodeRecord) -> Json:
    return {
        "node": node.name,
        "came": _time(node.came),
        "gone": _time(node.gone),
        "pods": node.pods,
        "peak": dict(sorted(node.peak.items())),
        "peakShare": round(node.peak_share, 4),
    }


def _series(outcome: Outcome) -> list[Json]:
    samples: Sequence[Any] = outcome.ledger.samples
    step = -(-len(samples) // POINTS) or 1
    names = resources(outcome.ledger)
    return [
        {
            "at": _time(one.at),
            "pending": one.pending,
            "running": one.running,
            "share": {name: round(one.share(name), 4) for name in names},
        }
        for one in samples[::step]
    ]


def _time(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
