"""What a scenario says, typed: nodes and pods that come, change and go, policies, expectations. Times are seconds.

`scenario.schema.json` is the form; `read` turns what is valid by it into a `Scenario`, or says what is still wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from random import Random
from typing import Any

from policyengine import quantity
from policyengine.cluster.objects import ObjectError, parse_time
from policyengine.control_characters import escaped
from policyengine.language.checking.given_objects import wrong_amount

Json = dict[str, Any]
Place = tuple[str | int, ...]
"""The way to a value in the scenario: keys and indexes."""

START = "2026-01-05T00:00:00Z"
"""A Monday; when a scenario begins that does not say."""
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|min|h|d)"
_DURATION = re.compile(f"(?:{_PART})+")
MOST_ARRIVALS = 1_000_000
"""Of one template, as `count` has it."""
_DRAWS = 100
"""From which the mean time between two arrivals is told."""


class ScenarioError(ValueError):
    """A scenario that cannot be played. One sentence; `place` leads to the value it is about, `more` are the others."""

    def __init__(self, message: str, place: Place = (), more: Sequence[ScenarioError] = ()) -> None:
        super().__init__(message)
        self.place = place
        self.more = tuple(more)


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
        ScenarioError: a time, duration or amount is none, or two templates have one name; with all others of its kind.
    """
    reader = _Reader()
    scenario = reader.scenario(data)
    if reader.wrong:
        first, *more = reader.wrong
        raise ScenarioError(str(first), first.place, more)
    return scenario


_TIMES = frozenset({"at", "poisson", "until", "for", "boundWithin", "boundBy", "from", "to"})
_DRAWN = frozenset({"every", "runs", "lives"})
_AMOUNTS = frozenset({"allocatable", "requests", "limits", "use"})
_DETAILS = frozenset({
    *("at", "for", "labels", "annotations", "taints", "allocatable", "ungate", "priority"),
    *("pods", "because", "from", "to", "atLeast", "atMost"),
})  # fmt: skip
"""Keys of changes and expectations beside the one that tells which it is; by the schema there is one other."""


class _Reader:
    """Reads what is valid by the schema, and collects what is wrong with it all the same."""

    def __init__(self) -> None:
        self.wrong: list[ScenarioError] = []
        self._ends = float("inf")
        """Seconds from the start, where the scenario has a duration."""

    def scenario(self, data: Mapping[str, Any]) -> Scenario:
        duration = self._seconds(data["duration"], ("duration",)) if "duration" in data else None
        self._ends = float("inf") if duration is None else duration
        nodes, pods = self._templates(data, "nodes"), self._templates(data, "pods")
        return Scenario(
            name=str(data.get("name", "")),
            start=self._moment(data.get("start", START)),
            seed=int(data.get("seed", 0)),
            duration=duration,
            nodes=nodes,
            pods=pods,
            policies=tuple(data.get("policies", ())),
            objects=tuple(data.get("objects", ())),
            changes=self._clauses(data, "changes"),
            expect=self._clauses(data, "expect"),
        )

    def _report(self, message: str, place: Place) -> None:
        self.wrong.append(ScenarioError(escaped(message), place))

    def _templates(self, data: Mapping[str, Any], key: str) -> tuple[Template, ...]:
        found, seen = [], set[str]()
        for index, said in enumerate(data[key]):
            place: Place = (key, index)
            timed = self._timed(said, place)
            gang = timed.get("gang")
            if gang is not None:
                gang = Gang(gang["size"], gang.get("min", gang["size"]), gang.get("by", "labels") == "labels")
            lasts = timed.get("runs", timed.get("lives"))
            template = Template(place, timed["name"], self._arrival(timed, place), timed, lasts, gang)
            if template.name in seen:
                self._report(f"other {key} are called `{template.name}` too", (*place, "name"))
            seen.add(template.name)
            found.append(template)
        return tuple(found)

    def _clauses(self, data: Mapping[str, Any], key: str) -> tuple[Clause, ...]:
        timed = (((key, index), self._timed(said, (key, index))) for index, said in enumerate(data.get(key, ())))
        return tuple(Clause(place, next(one for one in said if one not in _DETAILS), said) for place, said in timed)

    def _timed(self, said: Json, place: Place) -> Json:
        """The same with its durations in seconds, and those that are drawn as functions; its amounts are looked at."""
        timed = dict(said)
        for key in said:
            if key in _TIMES:
                timed[key] = self._seconds(said[key], (*place, key))
            elif key in _DRAWN:
                timed[key] = self._drawn(said[key], (*place, key))
            elif key in _AMOUNTS and isinstance(said[key], dict):
                self._look_at_amounts(said[key], (*place, key))
        if "waited" in said:
            waited = said["waited"].items()
            timed["waited"] = {key: self._seconds(value, (*place, "waited", key)) for key, value in waited}
        return timed

    def _look_at_amounts(self, amounts: Json, place: Place) -> None:
        for name, said in amounts.items():
            several = isinstance(said, list)
            for index, value in enumerate(said if several else [said]):
                wrong = wrong_amount(name, value)
                if wrong is None and quantity.nanos(value) < 0:
                    wrong = f"`{name}`: `{value}` is negative; write an amount of 0 or more"
                if wrong is not None:
                    self._report(wrong, (*place, name, index) if several else (*place, name))

    def _seconds(self, value: Any, place: Place) -> float:
        """A duration's seconds; of what is none, which is reported, one."""
        try:
            return seconds(value, place)
        except ScenarioError as error:
            self.wrong.append(error)
            return 1.0

    def _moment(self, text: str) -> float:
        try:
            found = parse_time(text if "T" in text else f"{text}T00:00:00Z")
        except ObjectError as error:
            self._report(str(error), ("start",))
            return 0.0
        assert found is not None
        return found

    def _drawn(self, said: Any, place: Place) -> Drawn:
        if not isinstance(said, dict):
            fixed = self._seconds(said, place)
            return lambda random: fixed
        if "exponential" in said:
            mean = self._seconds(said["exponential"], (*place, "exponential"))
            return lambda random: round(random.expovariate(1.0 / mean), 3) if mean else 0.0
        wrong = len(self.wrong)
        least, most = (self._seconds(one, (*place, "uniform", index)) for index, one in enumerate(said["uniform"]))
        if most < least and len(self.wrong) == wrong:
            self._report(f"`{said['uniform'][1]}` is less than `{said['uniform'][0]}`", (*place, "uniform"))
        return lambda random: round(random.uniform(least, most), 3)

    def _arrival(self, said: Json, place: Place) -> Arrival:
        gap = said.get("every")
        if "poisson" in said:
            gap = self._drawn({"exponential": said["poisson"]}, (*place, "poisson"))
        at, until = said.get("at", 0.0), said.get("until", float("inf"))
        count = None if gap is not None and "count" not in said else said.get("count", 1)
        if gap is not None:
            random = Random(0)
            mean = sum(gap(random) for _ in range(_DRAWS)) / _DRAWS
            if mean <= 0.0:
                key = "poisson" if "poisson" in said else "every"
                self._report("the time between two arrivals is more than 0", (*place, key))
            elif count is None and min(until, self._ends) == float("inf"):
                self._report(f"`{said['name']}` comes for ever; give `count`, `until` or a `duration`", place)
            elif count is None and (times := (min(until, self._ends) - at) / mean) > MOST_ARRIVALS:
                self._report(f"`{said['name']}` comes about {times:,.0f} times; the most is {MOST_ARRIVALS:,}", place)
        return Arrival(at, gap, count, until)


def seconds(value: Any, place: Place) -> float:
    """A duration's seconds. Raises `ScenarioError`."""
    if isinstance(value, int | float) and isfinite(value):
        return float(value)
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        raise ScenarioError(f"`{value}` is no duration; write 90s, 5min, 2h30min or 1d", place)
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, value))
