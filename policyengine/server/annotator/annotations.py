"""What is written to a node, and when. Pure: statistics and the node's annotations in, a merge patch of them out.

Rules:
1. A node that was measured lately carries its statistics and `policyengine.io/usage-*`; what was not is absent.
2. They are written together, when one of them moved by more than the tolerance, one came or went, the node was marked
   stale, or `policyengine.io/usage-at` is older than `refresh`.
3. A node whose measurement is older than `stale_after` keeps its last values and is marked `policyengine.io/stale`
   `"true"`; after `remove_after` all of it is removed. The age is that of `policyengine.io/usage-at`: a restart forgets
   nothing.
4. A node without `policyengine.io/usage-at` was never ours, and nothing is taken from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from policyengine import quantity
from policyengine.cluster.objects import Quantities, format_time
from policyengine.language.values import EvaluationError, parse_timestamp
from policyengine.server.annotator.measurement import CLOCKS_APART, MeasuredNode, Statistics

CONGESTION = "congestion-factor"
USAGE_CPU, USAGE_MEMORY, USAGE_AT = (f"policyengine.io/usage-{name}" for name in ("cpu", "memory", "at"))
STALE = "policyengine.io/stale"
_STATISTICS = ("mean-free", "std-free")
_FORECAST = "forcasted-free"
_MILLI = 1000.0
_CONGESTION_SCALE = 100.0

Patch = dict[str, str | None]
"""Annotation -> its value; None removes it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """When something is written. Times in seconds."""

    tolerance: float = 0.01
    """A share of the node's size (of 100 for the congestion)."""
    refresh: float = 300.0
    stale_after: float = 180.0
    remove_after: float = 900.0
    congestion: bool = False
    """Whether the congestion is measured; where it is not, its annotation belongs to others."""
    forecasts: bool = False
    """The same of the forecasts."""
    requested: bool = False
    """Whether it is written what pods ask for (`requested`)."""

    @property
    def owned(self) -> tuple[str, ...]:
        """Every annotation that is written, the mark included."""
        statistics = (*_STATISTICS, _FORECAST) if self.forecasts else _STATISTICS
        names = [f"{statistic}-{resource}" for resource in ("cpu", "memory") for statistic in statistics]
        names += [CONGESTION] if self.congestion else []
        return (*names, USAGE_CPU, USAGE_MEMORY, USAGE_AT, STALE)


Load = Mapping[str, Statistics]
"""What is known of one node, by what is measured (`MEASURED`)."""


def patch_of(node: MeasuredNode, load: Load, settings: Settings, now: float) -> Patch:
    """What to merge into the node's annotations; empty where nothing is to be written."""
    had = {name: node.metadata.annotations[name] for name in settings.owned if name in node.metadata.annotations}
    first, last = now - settings.stale_after, now + CLOCKS_APART
    fresh = {what: one for what, one in load.items() if first <= one.at <= last}
    if not fresh:
        return _aged(had, settings, now)
    wanted = _annotations(node, fresh)
    if not _moved(had, wanted, node, settings.tolerance) and now - (_moment(had, now) or 0.0) < settings.refresh:
        return {}
    return {name: wanted.get(name) for name in settings.owned if wanted.get(name) != had.get(name)}


def _annotations(node: MeasuredNode, load: Load) -> dict[str, str]:
    found = {USAGE_AT: format_time(int(max(one.at for one in load.values())))}
    for resource, scale, unit, usage in (("cpu", _MILLI, "m", USAGE_CPU), ("memory", 1.0, "", USAGE_MEMORY)):
        if resource not in load:
            continue
        one, size = load[resource], _amount(node.status.capacity, resource)
        values = zip((*_STATISTICS, _FORECAST), (one.mean, one.deviation, one.forecast), strict=True)
        found |= {f"{name}-{resource}": str(round(value * scale)) for name, value in values if value is not None}
        if size is not None:
            found[usage] = f"{max(0, round(size - one.last * scale))}{unit}"
    if "congestion" in load:
        found[CONGESTION] = str(round(load["congestion"].last))
    return found


def _amount(amounts: Quantities, resource: str) -> int | None:
    """Millicores or bytes; None where the node does not say, or not as a quantity."""
    try:
        return quantity.amount(resource, amounts[resource])
    except (KeyError, quantity.QuantityError):
        return None


def _moved(had: Mapping[str, str], wanted: Mapping[str, str], node: MeasuredNode, tolerance: float) -> bool:
    """Whether an annotation came, went, cannot be read, or is not near what it was."""
    if had.keys() != wanted.keys():
        return True
    for name, text in wanted.items():
        if name == USAGE_AT:
            continue
        old, new = _number(had[name]), _number(text)
        size = _CONGESTION_SCALE if name == CONGESTION else _amount(node.status.capacity, name.rpartition("-")[2])
        scale = float(size) if size is not None else max(abs(old), abs(new))
        if not math.isfinite(old) or abs(new - old) > tolerance * scale:
            return True
    return False


def _number(text: str) -> float:
    """Not finite where it cannot be read."""
    try:
        return float(text.removesuffix("m"))
    except ValueError:
        return float("inf")


def _aged(had: Mapping[str, str], settings: Settings, now: float) -> Patch:
    """Rules 3 and 4."""
    at = _moment(had, now)
    if at is None:
        return {}
    if now - at >= settings.remove_after:
        return dict.fromkeys(had)
    if now - at >= settings.stale_after and STALE not in had:
        return {STALE: "true"}
    return {}


def _moment(had: Mapping[str, str], now: float) -> float | None:
    """When the annotations were measured; a text that is no time, or one to come, is as old as can be."""
    if USAGE_AT not in had:
        return None
    try:
        at = parse_timestamp(had[USAGE_AT]) / 1e9
    except EvaluationError:
        return 0.0
    return at if at <= now + CLOCKS_APART else 0.0


RESOURCES: Mapping[str, str] = {
    "cpu": "cpu",
    "memory": "memory",
    "pods": "pods",
    "gpu": "nvidia.com/gpu",
    "ephemeral-storage": "ephemeral-storage",
}
"""The end of the annotation's name -> the resource."""
NAMES = tuple(f"{what}-{name}" for name in RESOURCES for what in ("requested", "free"))


def requested_of(node: MeasuredNode, requested: Mapping[str, int]) -> dict[str, str]:
    """The annotations of a node whose pods ask for so much, with which who reads them needs no watch of pods:
    `requested-RESOURCE` and `free-RESOURCE` of cpu (millicores), memory and ephemeral-storage (bytes), pods and gpu
    (counts). What is asked for beyond the node's allocatable leaves 0."""
    said: dict[str, str] = {}
    for name, resource in RESOURCES.items():
        asked, there = requested.get(resource, 0), _amount(node.status.allocatable, resource) or 0
        said |= {f"requested-{name}": str(asked), f"free-{name}": str(max(there - asked, 0))}
    return said
