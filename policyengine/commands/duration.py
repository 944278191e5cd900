"""Durations on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType  # not generic in every version of click that will do


class Duration(_Seconds):
    """`90s`, `5m`, `1h30m`, as Go writes them, longer than nothing; seconds."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds, or a usage error that names the option."""
        if isinstance(value, float):
            return value
        from policyengine.language.values import EvaluationError, parse_duration

        try:
            seconds = parse_duration(value) / 1e9
        except EvaluationError as error:
            self.fail(str(error), param, ctx)
        if seconds <= 0:
            self.fail(f"`{value}` is not longer than nothing", param, ctx)
        return seconds
