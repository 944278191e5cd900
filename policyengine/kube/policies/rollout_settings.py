"""How a candidate is tried, as a ConfigMap's annotations or a SchedulingPolicy's `spec` say it. Pure.

| setting | annotation of a ConfigMap, after `policyengine.io/` | field of a SchedulingPolicy |
|---|---|---|
| mode | `mode: shadow` | `spec.mode: Shadow` |
| sample | `shadow-sample: 10%` | `spec.shadow.sample: 10%` |
| namespaces | `canary-namespaces: stage in (test, trial), !critical` | `spec.canary.namespaceSelector` |
| percent | `canary-percent: "5"` | `spec.canary.percent: 5` |
| budget | `budget: "{unschedulable: 5%, window: 10m}"` | `spec.budget`, a mapping |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from policyengine.cluster.objects import LabelSelector
from policyengine.language.values import EvaluationError, parse_duration
from policyengine.plain_yaml import PlainYamlError, documents
from policyengine.plugins.selectors.label_selector import Requirement, compile_pod_selector, parse_requirements
from policyengine.scheduler.rollout import Budget, Mode, Rollout, RolloutSettings
from policyengine.suggestion import closest

MODE, SAMPLE, NAMESPACES, PERCENT, BUDGET = "mode", "sample", "namespaces", "percent", "budget"
LONGEST = 24 * 3600.0
"""Seconds of a window at most."""
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%?", re.ASCII)


class BadSetting(ValueError):
    """A setting of a candidate that makes no sense; one sentence."""


def rollout_settings(written: Mapping[str, object], names: Mapping[str, str], what: str = "") -> RolloutSettings | None:
    """How a candidate is tried; None where it serves: without a mode the others say nothing, so that taking it away is
    enough to promote a candidate.

    Arguments:
        written: setting -> what is written.
        names: setting -> how its author calls it.
        what: what these names are of, and a space: `annotation `.

    Raises:
        BadSetting: a setting makes no sense.
    """
    if MODE not in written:
        return None
    mode = _mode(f"{what}`{names[MODE]}`", str(written[MODE]))
    if mode is Mode.SHADOW and (alien := [one for one in (NAMESPACES, PERCENT) if one in written]):
        raise BadSetting(f"{what}`{names[alien[0]]}` is for the mode `canary`, and the mode is `shadow`")
    if mode is Mode.CANARY and not written.keys() & {NAMESPACES, PERCENT}:
        raise BadSetting(f"a canary needs `{names[NAMESPACES]}` or `{names[PERCENT]}`: which pods are its own?")
    fields: dict[str, Any] = {}
    for setting, value in written.items():
        if setting != MODE:
            field, read = _READ[setting]
            fields[field] = read(f"{what}`{names[setting]}`", value)
    return RolloutSettings(mode, **fields)


def _mode(name: str, text: str) -> Mode:
    try:
        return Mode(text.strip())
    except ValueError:
        near = closest(text, [mode.value for mode in Mode])
        hint = f"did you mean `{near}`?" if near else "there are `shadow` and `canary`"
        raise BadSetting(f"{name}: `{text[:40]}` is no mode; {hint}") from None


def share(name: str, value: object) -> float:
    """`5%`, `5` or `"5"` -> 0.05. Raises `BadSetting`."""
    match = _PERCENT.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool) or float(match[1]) > 100:
        raise BadSetting(f"{name}: `{str(value)[:40]}` is no percentage between 0 and 100")
    return float(match[1]) / 100


def namespaces(name: str, given: object) -> tuple[Requirement, ...]:
    """A label selector, or one as `kubectl -l` takes it. Raises `BadSetting`."""
    if isinstance(given, LabelSelector):
        selector = compile_pod_selector(given)
        if isinstance(selector, str):
            raise BadSetting(f"{name}: {selector}")
        return selector.requirements
    text = str(given)
    if not text.strip():
        raise BadSetting(f"{name} is empty; `kubernetes.io/metadata.name` selects every namespace")
    found = parse_requirements(text)
    if isinstance(found, str):
        part = found[:40].strip()
        raise BadSetting(f"{name}: `{part}` is no part of a label selector such as `stage in (test), !critical`")
    return found


def budget(name: str, given: object) -> Budget:
    """A mapping, or one in YAML or JSON. Raises `BadSetting`."""
    if isinstance(given, Mapping) and any(isinstance(value, Mapping | list) for value in given.values()):
        raise BadSetting(f"{name} is no mapping of names to plain values")
    fields = _mapping(name, given if isinstance(given, str) else json.dumps(given))
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if key not in _BUDGET:
            near = closest(key, _BUDGET)
            hint = f"did you mean `{near}`?" if near else f"there are {', '.join(_BUDGET)}"
            raise BadSetting(f"{name}: `{key}` is unknown; {hint}")
        field, read = _BUDGET[key]
        found[field] = read(f"{name}, `{key}`", value)
    return Budget(**found)


def _mapping(name: str, text: str) -> dict[str, str]:
    try:
        found = documents(text)
    except PlainYamlError as error:
        raise BadSetting(f"{name} {error}") from None
    import yaml

    if len(found) != 1 or not isinstance(found[0], yaml.MappingNode):
        raise BadSetting(f"{name} is no mapping such as `{{unschedulable: 5%, window: 10m}}`")
    fields: dict[str, str] = {}
    for key, value in found[0].value:
        if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
            raise BadSetting(f"{name} is no mapping of names to plain values")
        if key.value in fields:
            raise BadSetting(f"{name} gives `{key.value}` twice")
        fields[key.value] = value.value
    return fields


def _seconds(name: str, text: str) -> float:
    try:
        seconds = parse_duration(text) / 1e9
    except EvaluationError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST:
        raise BadSetting(f"{name}: `{text[:40]}` is no duration such as `20ms` or `10m`, of at most 24h")
    return seconds


def _count(name: str, text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise BadSetting(f"{name}: `{text[:40]}` is no number of pods between 1 and 9999")
    return int(text)


_BUDGET: Mapping[str, tuple[str, Callable[[str, str], object]]] = {
    "unschedulable": ("unschedulable", share),
    "divergence": ("divergence", share),
    "cycleTime": ("cycle_time", _seconds),
    "window": ("window", _seconds),
    "least": ("least", _count),
}
_READ: Mapping[str, tuple[str, Callable[[str, object], object]]] = {
    SAMPLE: ("sample", share),
    PERCENT: ("share", share),
    NAMESPACES: ("namespaces", namespaces),
    BUDGET: ("budget", budget),
}


_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
"""A requirement's operator, as a status names it."""
MOST_RULES = 10
"""Rules that are named in a status: those that make most differences."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """What was suspended, and why."""

    policy_hash: str
    settings: Mapping[str, Any]
    """How it was tried, as `described`."""
    why: str

    def is_of(self, policy_hash: str, settings: RolloutSettings) -> bool:
        """Whether it is this policy, tried in this way, that was suspended."""
        return self.policy_hash == policy_hash and without_nulls(self.settings) == without_nulls(described(settings))


def without_nulls(value: Any, depth: int = 3) -> Any:
    """JSON without the nulls of its upper levels: an API server does not keep them."""
    if depth and isinstance(value, Mapping):
        return {key: without_nulls(inner, depth - 1) for key, inner in value.items() if inner is not None}
    return value


def described(settings: RolloutSettings) -> dict[str, Any]:
    """How a candidate is tried, as plain values. Shares are percentages, times seconds."""
    budget = settings.budget
    return {
        "mode": settings.mode.value,
        "sample": _percent(settings.sample),
        "percent": _percent(settings.share),
        "namespaces": [
            f"{term.key} {_OPERATORS[term.operator]} {','.join(sorted(term.values))}" for term in settings.namespaces
        ],
        "budget": {
            "unschedulable": None if budget.unschedulable is None else _percent(budget.unschedulable),
            "divergence": None if budget.divergence is None else _percent(budget.divergence),
            "cycleTime": budget.cycle_time,
            "window": budget.window,
            "least": budget.least,
        },
    }


def found(rollout: Rollout) -> dict[str, Any]:
    """What was found of a candidate so far, as plain values."""
    agreement = rollout.agreement
    return {
        "compared": rollout.compared,
        "agreement": None if agreement is None else _percent(agreement),
        "otherNode": rollout.other_node,
        "otherFeasible": rollout.other_feasible,
        "decided": rollout.decided,
        "refused": rollout.refused,
        "rules": dict(rollout.by_rule.most_common(MOST_RULES)),
        "samples": [
            {
                "pod": one.pod,
                "live": one.live,
                "candidate": one.candidate,
                "feasible": {"live": one.feasible[0], "candidate": one.feasible[1]},
                "rules": list(one.rules[:MOST_RULES]),
            }
            for one in rollout.samples
        ],
    }


def _percent(share: float) -> float:
    return round(share * 100, 4)
