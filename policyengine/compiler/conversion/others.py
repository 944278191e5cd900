"""Plugins that are not kube-scheduler's own: a shipped policy, rules, a quota, or a note of what takes their place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from policyengine.compiler.assemble import PluginRegistry
from policyengine.compiler.conversion.reading import ConversionError, checked, passed_over
from policyengine.compiler.conversion.shipped import POD_GROUPS, SHIPPED, Members, members
from policyengine.compiler.conversion.wanted import WantedProfile
from policyengine.quantity import QuantityError, format_bytes, format_cpu, milli_value, value

_OF_POD_GROUPS: Final = frozenset({"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"})
"""What kube-scheduler 1.36 has by the feature gates GangScheduling and TopologyAwareWorkloadScheduling."""
QUOTAS: Final = ("CapacityScheduling", "Capacity")
"""Their quotas are objects, which are given beside the configuration."""
_LABEL: Final = "NodeLabel"
_INSTEAD: Final = {
    "QOSSort": "write `queue { order by pod.priority desc, pod.qos desc }`",
    "NodeResourcesAllocatable": "write a `score` rule over `node.allocatable`",
}
"""Plugins of kubernetes-sigs/scheduler-plugins -> what takes their place."""

Given = tuple[str, dict[str, Any]]
"""The arguments of a plugin, and where they stand."""
Enabled = Mapping[str, Mapping[str, int | None]]
"""Extension point -> plugins -> their weight there."""


def known_elsewhere(name: str) -> bool:
    """Whether the arguments of the plugin are read here."""
    return name in SHIPPED or name in QUOTAS or name == _LABEL


def take_others(wanted: WantedProfile, enabled: Enabled, given: Mapping[str, Given], registry: PluginRegistry) -> None:
    """Put into the profile what its other plugins mean. Raises `ConversionError`."""
    taken: dict[str, str] = {}
    for name in dict.fromkeys(name for plugins in enabled.values() for name in plugins):
        if name in registry or name == "DefaultBinder":
            continue
        path, arguments = given.get(name, ("", {}))
        weight = enabled["score"].get(name) or 1
        if name in _OF_POD_GROUPS:
            if _OF_POD_GROUPS.isdisjoint(taken.values()):
                _take(wanted, name, members(POD_GROUPS, {}, weight), taken)
        elif name in SHIPPED:
            read = _checked(arguments, SHIPPED[name].form, path, wanted)
            try:
                found = members(SHIPPED[name], read, weight)
            except ConversionError as error:
                raise ConversionError(f"`{path}`: {error}") from None
            if _take(wanted, name, found, taken):
                wanted.notes.append(f"`{name}` became the rules of policies/{SHIPPED[name].policy}.policy")
                wanted.notes += [f"`{name}`: {SHIPPED[name].needs}"] if SHIPPED[name].needs else []
        elif name in QUOTAS:
            wanted.counts_quotas = True
        elif name == _LABEL:
            scores = weight if name in enabled["score"] else None
            labels = _checked(arguments, "nodeLabel", path, wanted)
            wanted.rules += node_label(labels, name in enabled["filter"], scores)
        else:
            instead = _INSTEAD.get(name)
            wanted.notes.append(f"`{name}` is no plugin of kube-scheduler's own" + (f": {instead}" if instead else ""))


def _take(wanted: WantedProfile, name: str, found: Members, taken: dict[str, str]) -> bool:
    """Whether it may stand beside what is taken already."""
    rival = next((taken[one] for one in found.names if one in taken), None)
    if rival is not None:
        wanted.notes.append(f"`{rival}` and `{name}` cannot be had together; the first is kept")
        return False
    taken.update(dict.fromkeys(found.names, name))
    wanted.rules += found.texts
    wanted.queue = wanted.queue or found.queue
    return True


def _checked(arguments: dict[str, Any], form: str, path: str, wanted: WantedProfile) -> dict[str, Any]:
    wanted.notes += passed_over(arguments, form, path)
    try:
        return checked(arguments, form)
    except ConversionError as error:
        raise ConversionError(f"`{path}`: {error}") from None


def label_filter(name: str, present: Iterable[str], absent: Iterable[str] = ()) -> str:
    """A filter: every label that is present must be there, and none of the absent ones."""
    tests = [f"require {_there(label)}" for label in present] + [f"require !({_there(label)})" for label in absent]
    return f"filter {json.dumps(name)} {{ {' '.join(tests)} }}"


def label_score(name: str, weight: int, present: Iterable[str], absent: Iterable[str] = ()) -> str:
    """A score: 100 where all preferences are met, 0 where none is."""
    points = [f"{_there(label)} ? 100 : 0" for label in present] + [f"{_there(label)} ? 0 : 100" for label in absent]
    value = points[0] if len(points) == 1 else f"({' + '.join(f'({one})' for one in points)}) / {len(points)}"
    return f"score {json.dumps(name)} weight {weight} = {value}"


def _there(label: str) -> str:
    return f"{json.dumps(label)} in node.labels"


def node_label(arguments: Mapping[str, Any], filters: bool, weight: int | None) -> list[str]:
    """What the plugin does, as members of a policy. `weight` None: it does not score."""
    wanted = [arguments.get(key, []) for key in ("presentLabels", "absentLabels")]
    preferred = [arguments.get(key, []) for key in ("presentLabelsPreference", "absentLabelsPreference")]
    found = [label_filter("node-label", *wanted)] if filters and any(wanted) else []
    return found + ([label_score("node-label", weight, *preferred)] if weight is not None and any(preferred) else [])


_BYTES = {"memory": "memory", "ephemeral-storage": "storage"}


def quota(given: object) -> tuple[str, list[str]]:
    """An ElasticQuota of scheduler-plugins' CapacityScheduling (KEP-9) as a rule, "" where it would say nothing; and
    notes for what it cannot say. `min` is what a namespace is owed, `max` what it may have, and in between it borrows
    what is free. Raises `ConversionError`."""
    root = checked(given, "elasticQuota")
    name, namespace = root["metadata"]["name"], root["metadata"].get("namespace", "default")
    spec, notes = root.get("spec", {}), []
    fields = []
    for key, written in (("min", "guarantee"), ("max", "limit")):
        amounts = {resource: amount for resource, amount in spec.get(key, {}).items() if resource != "pods"}
        if len(amounts) < len(spec.get(key, {})):
            notes.append(
                f"ElasticQuota `{namespace}/{name}` counts pods, which no quota does; `{key}.pods` was left out"
            )
        if amounts:
            fields.append(f"{written}: {{{', '.join(_amount(one, amounts[one], f'spec.{key}') for one in amounts)}}}")
    if not fields:
        return "", [*notes, f"ElasticQuota `{namespace}/{name}` says nothing; it was left out"]
    head = f"quota {json.dumps(f'{namespace}/{name}')} when pod.namespace == {json.dumps(namespace)}"
    return f"{head} {{ {' '.join(fields)} borrow: true }}", notes


def _amount(resource: str, amount: Any, path: str) -> str:
    try:
        if resource == "cpu":
            return f"cpu: {format_cpu(max(0, milli_value(amount)))}"
        exact = max(0, value(amount))
    except QuantityError as error:
        raise ConversionError(f"`{path}.{resource}`: {error}") from None
    return f"{_BYTES[resource]}: {format_bytes(exact)}" if resource in _BYTES else f"{json.dumps(resource)}: {exact}"
