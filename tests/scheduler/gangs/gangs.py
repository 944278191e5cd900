"""Gangs by label, and a scheduler that knows them."""

from __future__ import annotations

from tests.builders import PodBuilder
from tests.scheduler.driver import Driver, Label, pod, profile


def member(name: str, minimum: str = "2", gang: str = "g", cpu: str = "1", **labels: str) -> PodBuilder:
    return pod(name, cpu).labels({"gang": gang, "min": minimum, **labels})


def scheduler(**changes) -> Driver:
    return Driver(profile(gangs=(Label(),), **changes))
