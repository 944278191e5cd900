"""What a scenario says, typed: nodes and pods that come, change and go, policies, expectations. Times are seconds.

`scenario.schema.json` is the form; `read` turns what is valid by it into a `Scenario`, or says what is still wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from policyengine.cluster.objects import ObjectError, parse_time

T = TypeVar("T")
Json = dict[str, Any]
Place = tuple[str | int, ...]
"""The way to a value in the scenario: keys and indexes."""

START = "2026-01-05T00:00:00Z"
"""A Monday; when a scenario begins that does not say."""
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|min|h|d)"
_DURATION = re.compile(f"(?:{_PART})+")


class ScenarioError(ValueError):
    """A scenario that cannot be played. One sentence; `place` leads to the value it is about."""

    def __init__(self, message: str, place: Place = ()) -> None:
        super().__init__(message)
        self.place = place


Drawn = Callable[[Random], float]
"""A number of seconds, or one drawn."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """When the things of a template come."""

    at: float
    gap: Drawn | None
    """Seconds from one to the next; None: all at once."""
    count: int | None
    """How many; None: as many as come before `until`."""
    until: float


@dataclass(frozen=True, slots=True)
class Gang:
    """Each arrival is a gang."""

    size: int
    minimum: int
    by_labels: bool
    """By labels, as `policies/riya.policy` reads them; else by a PodGroup of scheduler-plugins."""


@dataclass(frozen=True, slots=True)
class Template:
    """Nodes or pods that come."""

    place: Place
    name: str
    arrival: Arrival
    given: Json
    """As written: allocatable, labels, zones, … of nodes; namespace, requests, priority, spec, … of pods."""
    lasts: Drawn | None = None
    """How long a node lives, or a pod runs."""
    gang: Gang | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A change, or an expectation: `what` is the key that tells which, `said` the whole of it, durations in seconds."""

    place: Place
    what: str
    said: Json


@dataclass(frozen=True, slots=True)
class Scenario:
    """The whole."""

    name: str
    start: float
    """Seconds since the epoch."""
    seed: int
    duration: float | None
    nodes: tuple[Template, ...]
    pods: tuple[Template, ...]
    policies: tuple[Json, ...] = ()
    """Each by its `file`, or by its `text`."""
    objects: tuple[Json, ...] = ()
    changes: tuple[Clause, ...] = ()
    expect: tuple[Clause, ...] = ()


def read(data: Mapping[str, Any]) -> Scenario:
    """The scenario that data valid by the schema says.

    Raises:
        ScenarioError: a time or duration is none, or two templates have one name.
    """
    nodes, pods = _each(data, "nodes", _template), _each(data, "pods", _template)
    for what, templates in (("nodes", nodes), ("pods", pods)):
        seen: set[str] = set()
        for template in templates:
            if template.name in seen:
                raise ScenarioError(f"other {what} are called `{template.name}` too", (*template.place, "name"))
            seen.add(template.name)
            endless = template.arrival.count is None and template.arrival.until == float("inf")
            if endless and "duration" not in data:
                message = f"`{template.name}` comes for ever; give `count`, `until` or a `duration`"
                raise ScenarioError(message, template.place)
    return Scenario(
        name=str(data.get("name", "")),
        start=_moment(data.get("start", START)),
        seed=int(data.get("seed", 0)),
        duration=seconds(data["duration"], ("duration",)) if "duration" in data else None,
        nodes=nodes,
        pods=pods,
        policies=tuple(data.get("policies", ())),
        objects=tuple(data.get("objects", ())),
        changes=_each(data, "changes", _clause),
        expect=_each(data, "expect", _clause),
    )


def _each(data: Mapping[str, Any], key: str, reader: Callable[[Json, Place], T]) -> tuple[T, ...]:
    return tuple(reader(_timed(one, (key, index)), (key, index)) for index, one in enumerate(data.get(key, ())))


_TIMES = frozenset({"at", "poisson", "until", "for", "boundWithin", "boundBy", "from", "to"})
_DRAWN = frozenset({"every", "runs", "lives"})


def _timed(said: Json, place: Place) -> Json:
    """The same with its durations in seconds, and those that are drawn as functions."""
    timed = dict(said)
    for key in said.keys() & _TIMES:
        timed[key] = seconds(said[key], (*place, key))
    for key in said.keys() & _DRAWN:
        timed[key] = _drawn(said[key], (*place, key))
    if "waited" in said:
        timed["waited"] = {key: seconds(value, (*place, "waited", key)) for key, value in said["waited"].items()}
    return timed


def seconds(value: Any, place: Place) -> float:
    """A duration's seconds. Raises `ScenarioError`."""
    if isinstance(value, int | float):
        return float(value)
    if not _DURATION.fullmatch(value):
        raise ScenarioError(f"`{value}` is no duration; write 90s, 5min, 2h30min or 1d", place)
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, value))


def _moment(text: str) -> float:
    try:
        found = parse_time(text if "T" in text else f"{text}T00:00:00Z")
    except ObjectError as error:
        raise ScenarioError(str(error), ("start",)) from None
    assert found is not None
    return found


def _drawn(said: Any, place: Place) -> Drawn:
    if not isinstance(said, dict):
        fixed = seconds(said, place)
        return lambda random: fixed
    if "exponential" in said:
        mean = seconds(said["exponential"], (*place, "exponential"))
        return lambda random: round(random.expovariate(1.0 / mean), 3) if mean else 0.0
    least, most = (seconds(one, (*place, "uniform", index)) for index, one in enumerate(said["uniform"]))
    if most < least:
        raise ScenarioError(f"`{said['uniform'][1]}` is less than `{said['uniform'][0]}`", (*place, "uniform"))
    return lambda random: round(random.uniform(least, most), 3)


def _arrival(said: Json, place: Place) -> Arrival:
    gap = said.get("every")
    if "poisson" in said:
        gap = _drawn({"exponential": said["poisson"]}, (*place, "poisson"))
    if gap is not None and gap(Random(0)) <= 0.0:
        key = "poisson" if "poisson" in said else "every"
        raise ScenarioError("the time between two arrivals is more than 0", (*place, key))
    count = None if gap is not None and "count" not in said else said.get("count", 1)
    return Arrival(said.get("at", 0.0), gap, count, said.get("until", float("inf")))


def _template(said: Json, place: Place) -> Template:
    gang = said.get("gang")
    if gang is not None:
        gang = Gang(gang["size"], gang.get("min", gang["size"]), gang.get("by", "labels") == "labels")
    return Template(place, said["name"], _arrival(said, place), said, said.get("runs", said.get("lives")), gang)


_DETAILS = frozenset({
    *("at", "for", "labels", "annotations", "taints", "allocatable", "ungate", "priority"),
    *("pods", "because", "from", "to", "atLeast", "atMost"),
})  # fmt: skip
"""Keys of changes and expectations beside the one that tells which it is; by the schema there is one other."""


def _clause(said: Json, place: Place) -> Clause:
    return Clause(place, next(key for key in said if key not in _DETAILS), said)
