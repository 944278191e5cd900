"""Plugins of others that a policy of `policies/` stands for, and what of that policy goes into a converted one.

Sources: apis/config/v1 of kubernetes-sigs/scheduler-plugins (Coscheduling, Trimaran), and the configurations of riya
and of the mini scheduler. A plugin of theirs is at work where any extension point enables it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from policyengine.compiler.conversion.reading import ConversionError
from policyengine.language import syntax
from policyengine.language.diagnostics import Source
from policyengine.language.parse import parse_file
from policyengine.language.syntax.expression_nodes import Span
from policyengine.quantity import QuantityError, format_cpu, milli_value

To = tuple[str, Callable[[Any], str]]
"""The param of the policy, and how an argument is written as its value; the default holds where nothing is."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """The policy that does what a plugin does."""

    policy: str
    form: str
    """What of `configurations.schema.json` the arguments are held against."""
    params: Mapping[str, To] = field(default_factory=dict)
    """Argument -> param. Other arguments have no meaning here."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Of params, where no argument says another."""
    needs: str = ""
    """What has to be there for the policy to do its work, as a note."""


def _above_0(given: Any) -> str:
    """As the plugin does: what is not above 0 means the default."""
    return str(given) if given > 0 else ""


def _double(given: Any) -> str:
    return repr(float(given)) if float(given) >= 0 else ""


def _cpu(given: Any) -> str:
    try:
        return format_cpu(max(0, milli_value(given.get("cpu", 0))))
    except QuantityError as error:
        raise ConversionError(f"`defaultRequests.cpu`: {error}") from None


def _flag(given: Any) -> str:
    return "true" if given else "false"


_STATISTICS = "`policyengine annotate` writes the statistics that it reads to the nodes"
SHIPPED: Mapping[str, Shipped] = {
    "riya": Shipped("riya", "others"),
    "Coscheduling": Shipped(
        "pod-groups", "coscheduling", {"permitWaitingTimeSeconds": ("permitWaitingTime", "{}s".format)}
    ),
    "TargetLoadPacking": Shipped(
        "target-load-packing",
        "targetLoadPacking",
        {
            "targetUtilization": ("targetUtilization", _above_0),
            "defaultRequests": ("defaultRequests", _cpu),
            "defaultRequestsMultiplier": ("defaultRequestsMultiplier", _double),
        },
        needs=_STATISTICS,
    ),
    "LoadVariationRiskBalancing": Shipped(
        "load-variation-risk",
        "loadVariationRiskBalancing",
        {
            "safeVarianceMargin": ("safeVarianceMargin", _double),
            "safeVarianceSensitivity": ("safeVarianceSensitivity", _double),
        },
        needs=_STATISTICS,
    ),
    "NodeNumber": Shipped("nodenumber", "nodeNumber", {"reverse": ("reverse", _flag)}),
}
POD_GROUPS = Shipped("pod-groups", "others", values={"permitWaitingTime": "5min"})
"""kube-scheduler's own plugins for pod groups; how long a part of a group may hold room is theirs (v1.36)."""


@dataclass(slots=True)
class Members:
    """What of a shipped policy goes into another, as text."""

    names: set[str]
    """Of its params, lets and functions: they are the policy's, so no other may have them."""
    texts: list[str]
    queue: str
    """What stands in its `queue`."""


def members(shipped: Shipped, arguments: Mapping[str, Any], weight: int) -> Members:
    """The members of the policy but for its tests and its scheduler's name.

    Arguments:
        arguments: of the plugin, checked.
        weight: of the policy's score.

    Raises:
        ConversionError: an argument is none.
    """
    source = _source(shipped.policy)
    file, _ = parse_file(source)
    [policy] = file.policies
    given = {**shipped.values} | {
        param: write(arguments[name]) for name, (param, write) in shipped.params.items() if name in arguments
    }
    found = Members(set(), [], "")
    end = source.text.index("{", policy.name.span.end) + 1
    for member in policy.members:
        start, end = end, member.span.end
        match member:
            case syntax.Test() | syntax.Scheduler() | syntax.Base():
                continue
            case syntax.Queue():
                found.queue = source.text[source.text.index("{", member.span.start) + 1 : end - 1].strip()
                continue
            case syntax.Param():
                text = _put(source.text, start, end, member.default.span, given.get(member.name.text))
            case syntax.Score() if member.weight is not None:
                text = _put(source.text, start, end, member.weight.span, str(weight))
            case _:
                text = source.text[start:end]
        if isinstance(member, syntax.Param | syntax.Let | syntax.Function):
            found.names.add(member.name.text)
        found.texts.append(text.strip())
    return found


def _put(text: str, start: int, end: int, place: Span, put: str | None) -> str:
    return text[start:end] if not put else text[start : place.start] + put + text[place.end : end]


@cache
def _source(name: str) -> Source:
    """The wheel brings the policies along inside the package, a checkout has them beside it."""
    package = Path(__file__).resolve().parent.parent.parent
    inside = package / "policies"
    folder = inside if inside.is_dir() else package.parent / "policies"
    return Source(f"{name}.policy", (folder / f"{name}.policy").read_text(encoding="utf-8"))
