"""What may be varied: params that declare a range or values, and weights that stand in the policy as numbers.

A value is told as one writes it, in `params.yaml` or in the policy: `2Gi`, `500m`, `pack`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any, Final

from policyengine.compiler.params import ParamError, convert
from policyengine.compiler.tuning import GRAINS
from policyengine.language import ir
from policyengine.language.checking.setting_checks import LARGEST_WEIGHT
from policyengine.language.types import INT, Kind, Type
from policyengine.language.values import display
from policyengine.suggestion import closest

WEIGHT: Final = "weight:"
"""Begins the name of a weight: `weight:fullest`. No param's name has a colon."""
HEAVIEST: Final = 100
"""Up to which weights are tried; ten times what stands there where that is more."""


class NothingToTune(ValueError):
    """What is asked for cannot be varied; the message says why."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One value that may be varied."""

    name: str
    """A param's full name, or `weight:` and a rule's or plugin's."""
    now: str
    """Its value in the policy as it is."""
    type: Type
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    """The bounds of a number, in the scheduler's units."""
    grain: int = 0
    """Numbers are multiples of it, counted from `low`; 0 for a double."""
    is_ratio: bool = False
    """Whether twice as much matters more than one more: a weight."""

    def written(self, found: float | str) -> str:
        """A value that the search found, as one writes it; a double to a thousandth of its range."""
        if isinstance(found, str):
            return found
        digits = 3 - floor(log10(self.high - self.low)) if self.type.kind is Kind.DOUBLE else 0
        return display(max(self.low, min(self.high, round(found, digits))) if digits else found, self.type)

    def profile(self, points: int) -> list[str]:
        """So many values from one end to the other, or all there are to choose from."""
        if self.choices:
            return list(self.choices)
        if self.is_ratio:
            values = [self.low * (self.high / self.low) ** (at / (points - 1)) for at in range(points)]
        else:
            values = [self.low + (self.high - self.low) * at / (points - 1) for at in range(points)]
        if self.grain:
            values = [self.low + round((one - self.low) / self.grain) * self.grain for one in values]
        return list(dict.fromkeys(map(self.written, values)))


def of_params(policy: ir.Policy, values: dict[str, Any]) -> Iterator[Dimension]:
    """Those params of a checked policy that declare a range or values; `values`: what they are."""
    for param in policy.params:
        if param.values is not None:
            choices = tuple(display(one, param.type) for one in param.values)
            if len(choices) > 1 and all(_is_written(one, param) for one in choices):
                yield Dimension(param.name, display(values[param.name], param.type), param.type, choices)
        elif param.minimum is not None and param.maximum is not None and param.type.kind in GRAINS:
            found = _numbers(param, values[param.name])
            if found is not None:
                yield found


def _is_written(text: str, param: ir.Param) -> bool:
    try:
        convert(text, param.type, param.name)
    except ParamError:
        return False
    return True


def _numbers(param: ir.Param, value: object) -> Dimension | None:
    low, high, grain = param.minimum, param.maximum, GRAINS[param.type.kind]
    assert isinstance(low, int | float) and isinstance(high, int | float)
    if grain > 1 and high - low < 4 * grain:
        grain = 1
    if param.type.kind is not Kind.DOUBLE:
        high = low + (high - low) // grain * grain
    if low >= high:
        return None
    return Dimension(param.name, display(value, param.type), param.type, (), low, high, grain)


def of_weight(rule: str, now: int) -> Dimension:
    """The weight of a rule or plugin."""
    most = min(LARGEST_WEIGHT, max(HEAVIEST, 10 * now))
    return Dimension(WEIGHT + rule, str(now), INT, (), 1, most, 1, is_ratio=True)


def chosen(found: Sequence[Dimension], names: Iterable[str], params: Sequence[ir.Param]) -> list[Dimension]:
    """Those of these names; all where none is given. Raises `NothingToTune`."""
    by_name, wanted = {one.name: one for one in found}, list(dict.fromkeys(names))
    for name in wanted:
        if name in by_name:
            continue
        if any(param.name == name for param in params):
            raise NothingToTune(f"param `{name}` has no `range` of numbers and no `values`: nothing says what to try")
        close = closest(name, list(by_name))
        hint = f"; did you mean `{close}`?" if close else f"; there are {', '.join(by_name) or 'none'}"
        raise NothingToTune(f"`{name}` is nothing that can be varied{hint}")
    if not found:
        raise NothingToTune("the policy has no param with a `range` or `values`, and no two scores to weigh")
    return [by_name[name] for name in wanted] if wanted else list(found)
