"""Moments on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType  # not generic in every version of click that will do


class Moment(_Seconds):
    """`2026-01-05T18:30:00+01:00`, as RFC 3339 has it; seconds since the epoch."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds, or a usage error that names the option."""
        if isinstance(value, float):
            return value
        from policyengine.language.values import EvaluationError, parse_timestamp

        try:
            return parse_timestamp(value) / 1e9
        except EvaluationError as error:
            self.fail(str(error), param, ctx)
