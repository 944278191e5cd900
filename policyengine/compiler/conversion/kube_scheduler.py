"""A policy as `KubeSchedulerConfiguration` (v1): its base as plugins and their arguments; its rules, and the plugins of
Python packages that it uses, as an extender.

The extender is `ignorable`: while it is away kube-scheduler goes on without it, so that neither has to start first,
and the pod that runs it can be placed. Its weight is the sum of the scores' weights: kube-scheduler multiplies an
extender's 0..10 by ten times that, which is what the rules weigh inside (but for the grain of 0..10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from policyengine.compiler.assemble import PluginRegistry, weight_of
from policyengine.compiler.params import param_values
from policyengine.language import ir

API_VERSION = "kubescheduler.config.k8s.io/v1"
_UNAVOIDABLE = ("PrioritySort", "DefaultBinder")
"""Without them kube-scheduler does not start."""
_DEFAULTS = ir.Queue(order=())


def kube_scheduler_configuration(
    policies: Sequence[ir.Policy], registry: PluginRegistry, url: str, given: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """The configuration, as data for YAML. `url` is where the extender answers, without a policy's name."""
    queue = policies[0].queue
    answer: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    for field, seconds, default in (
        ("podInitialBackoffSeconds", queue.initial_backoff, _DEFAULTS.initial_backoff),
        ("podMaxBackoffSeconds", queue.max_backoff, _DEFAULTS.max_backoff),
    ):
        if seconds != default:
            answer[field] = max(1, round(seconds))
    answer["profiles"] = [_profile(policy, registry, given or {}) for policy in policies]
    extenders = [_extender(policy, registry, url, given or {}) for policy in policies]
    return {**answer, **_given({"extenders": [one for one in extenders if len(one) > 1]})}


def without_place(policies: Sequence[ir.Policy]) -> list[str]:
    """What of the policies has no place behind kube-scheduler, a sentence each."""
    notes: list[str] = []
    for policy in policies:
        members = {
            "gang": policy.gangs,
            "permit": policy.permits,
            "preempt": policy.preempt,
            "on": policy.logs,
            "bind": policy.annotations,
            "fair by": policy.queue.fair_by,
        }
        tiers = [f"`{score.name}`" for score in policy.scores if score.weight is None]
        if tiers:
            notes.append(f"policy `{policy.name}`: other plugins may outweigh {', '.join(tiers)} behind kube-scheduler")
        idle = [f"`{name}`" for name, there in members.items() if there]
        if not _by_priority(policy.queue):
            idle.append("the queue's order")
        if idle:
            notes.append(f"policy `{policy.name}`: {', '.join(idle)} have no effect behind kube-scheduler")
    first = policies[0]
    notes += [
        f"policy `{policy.name}`: its backoff is that of `{first.name}`; kube-scheduler has one for all profiles"
        for policy in policies
        if (policy.queue.initial_backoff, policy.queue.max_backoff)
        != (first.queue.initial_backoff, first.queue.max_backoff)
    ]
    if len(policies) > 1 and any(policy.filters or policy.scores or policy.quotas for policy in policies):
        notes.append("every extender is asked about the pods of every profile; give each policy a kube-scheduler")
    return notes


def _by_priority(queue: ir.Queue) -> bool:
    return [(key.descending, getattr(key.value, "path", None)) for key in queue.order] == [(True, ("pod", "priority"))]


def _profile(policy: ir.Policy, registry: PluginRegistry, given: Mapping[str, object]) -> dict[str, Any]:
    params = param_values(policy.params, given)
    multi: dict[str, list[dict[str, Any]]] = {"enabled": [], "disabled": []}
    score: dict[str, list[dict[str, Any]]] = {"enabled": [], "disabled": []}
    arguments: list[dict[str, Any]] = []
    if policy.base == "none":
        multi["disabled"].append({"name": "*"})
        multi["enabled"] += [{"name": name} for name in _UNAVOIDABLE]
    elif policy.base == "filters":
        score["disabled"].append({"name": "*"})
    for use in policy.uses:
        entry = registry[use.name]
        if not entry.in_base:
            continue  # the extender answers for it
        weight = _weight(use, registry, params)
        if use.arguments:
            arguments.append({"name": use.name, "args": _arguments(use)})
        if policy.base == "none":
            multi["enabled"].append({"name": use.name, "weight": weight} if weight else {"name": use.name})
        elif policy.base == "kubernetes" and weight and weight != entry.default_weight:
            multi["enabled"].append({"name": use.name, "weight": weight})
        if policy.base == "filters" and weight:
            score["enabled"].append({"name": use.name, "weight": weight})
        elif weight == 0 and policy.base != "filters":
            score["disabled"].append({"name": use.name})
    multi["disabled"] += [{"name": name} for name in policy.disabled]
    plugins = _given({"multiPoint": _given(multi), "score": _given(score)})
    return {"schedulerName": policy.scheduler, **_given({"plugins": plugins, "pluginConfig": arguments})}


def _given(data: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is empty."""
    return {key: value for key, value in data.items() if value}


def _arguments(use: ir.PluginUse) -> dict[str, Any]:
    """kube-scheduler's own form: `strategy` is a shorthand of the language."""
    given = dict(use.arguments)
    strategy = given.pop("strategy", None)
    if strategy is not None:
        given["scoringStrategy"] = {"type": strategy}
    return {"apiVersion": API_VERSION, "kind": f"{use.name}Args", **given}


def _weight(use: ir.PluginUse, registry: PluginRegistry, params: Mapping[str, object]) -> int | None:
    return registry[use.name].default_weight if use.weight is None else weight_of(use.weight, params)


def _extender(policy: ir.Policy, registry: PluginRegistry, url: str, given: Mapping[str, object]) -> dict[str, Any]:
    params = param_values(policy.params, given)
    answer: dict[str, Any] = {"urlPrefix": f"{url.rstrip('/')}/{quote(policy.name, safe='')}"}
    packaged = [use for use in policy.uses if not registry[use.name].in_base]
    if policy.filters or policy.quotas or any(registry[use.name].filters for use in packaged):
        answer |= {"filterVerb": "filter", "preemptVerb": "preempt"}
    weights = [_weight(use, registry, params) or 0 for use in packaged if registry[use.name].scores]
    if policy.scores or any(weights):
        weights += [weight_of(score.weight, params) for score in policy.scores if score.weight is not None]
        answer |= {"prioritizeVerb": "prioritize", "weight": sum(weights) or 1}
    if len(answer) > 1:
        answer |= {"nodeCacheCapable": True, "ignorable": True, "httpTimeout": "5s"}
        if url.startswith("https:"):
            answer["enableHTTPS"] = True
    return answer
