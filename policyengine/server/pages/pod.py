"""The pods that wait, and those that are looked for by name or node. One pod: its story, what every rule says of every
node, why it has its node, and what would help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.view import Snapshot
from policyengine.diagnosis.kubectl_commands import line
from policyengine.diagnosis.suggest import suggest
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.plugin import FilterPlugin
from policyengine.framework.plugin_column import PluginColumn
from policyengine.framework.profile import Profile
from policyengine.scheduler.state import SchedulerState
from policyengine.server import debug
from policyengine.server.pages.source import Asked, Moment, NotShown, part
from policyengine.server.pages.waiting import Waiting, waiting
from policyengine.suggestion import closest
from policyengine.trials.trial_attempts import as_pending

BOUND = "bound"
_KEYS = {
    "pod": lambda one: one.pod.key,
    "scheduler": lambda one: (one.pod.scheduler_name, one.pod.key),
    "place": lambda one: (one.place, one.pod.key),
    "since": lambda one: one.pod.created_at,
    "attempts": lambda one: 0 if one.queued is None else one.queued.attempts,
    "priority": lambda one: one.pod.priority,
}


def all_content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows."""
    state, query = moment.state, asked.query
    looked_for, place = query.get("q", "").strip(), query.get("place", "")
    found = [one for one in _asked_for(state, looked_for, place) if _matches(one, asked, looked_for)]
    shown = part(found, asked, _KEYS)
    shown["rows"] = [(one, state.last_message(one.pod.uid)) for one in shown["rows"]]
    filters = [(name, query[name]) for name in ("scheduler", "place", "reason", "node") if query.get(name)]
    return {**shown, "looked_for": looked_for, "filters": filters}


def _asked_for(state: SchedulerState, looked_for: str, place: str) -> Iterator[Waiting]:
    """Those that wait, in the order of their turns; where somebody looks for a pod, those with a node behind them."""
    if place != BOUND:
        yield from waiting(state)
    if looked_for or place == BOUND:
        bound = (pod for pod in state.view.pods.values() if pod.state is PodState.BOUND)
        yield from (Waiting(pod, BOUND, f"on {pod.node_name}", None) for pod in bound)


def _matches(one: Waiting, asked: Asked, looked_for: str) -> bool:
    query = asked.query
    wanted = {"scheduler": one.pod.scheduler_name, "place": one.place, "node": one.pod.node_name}
    if any(query.get(name) and query[name] != has for name, has in wanted.items()):
        return False
    reason = query.get("reason")
    if reason and reason != one.reason and reason not in one.reason.split(", "):
        return False
    return looked_for in one.pod.key


BEST: Final = 8
"""Nodes whose scores are drawn."""
MOST_NODES: Final = 500
"""Nodes up to which a scheduler that runs is asked what would help: that takes some of its time."""
SECONDS: Final = 1.0
"""After which no more changes are tried out for a page."""
COLOURS: Final = 8


def content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows. Raises `NotShown`."""
    state = moment.state
    pod = state.view.find_pod(asked.path["namespace"], asked.path["name"])
    if pod is None:
        raise NotShown(404, _unknown(state, f"{asked.path['namespace']}/{asked.path['name']}"))
    told = debug.pod_timeline(state, pod.namespace, pod.name)
    profile = next((one for one in state.profiles if one.scheduler_name == pod.scheduler_name), None)
    found: dict[str, Any] = {"pod": pod, "told": told, "stacks": _stacks(told["why"]), "remedies": None}
    # The command that says the same in a terminal; empty for a name that no shell should see.
    explain = line(pod.key, names=[pod.name, pod.namespace]).replace("kubectl", "policyengine explain", 1)
    found |= {"explain": explain, "verdicts": None, "refused_whole": None}
    if profile is None:
        return found
    with as_pending(state, pod, [pod.uid] if pod.node_name else []) as (pending, snapshot):
        found |= _judged(Evaluator(profile), state, pending, snapshot, asked)
    if asked.query.get("remedies") and pod.state is PodState.PENDING:
        found["remedies"] = _remedies(state, profile, pod, moment, asked)
    return found


def _unknown(state: SchedulerState, key: str) -> str:
    near = closest(key, [pod.key for pod in state.view.pods.values()]) if len(state.view.pods) <= debug.MOST else None
    return f"no pod `{key}` waits or runs here" + (f"; did you mean `{near}`?" if near else "")


def _judged(
    evaluator: Evaluator, state: SchedulerState, pod: PodInfo, snapshot: Snapshot, asked: Asked
) -> dict[str, Any]:
    """What the policy says of every node, as of this moment. Of a node: `refused`, rule -> its reason, of those that
    refuse it; `scores`, rule -> weighted score, and `total`, where it was scored."""
    diagnosis = filter_with_nominated(evaluator, state.view, pod)
    if pod.problem is not None:  # no rule can be asked about it
        return {"refused_whole": diagnosis.pre_filter}
    answered = [
        (filter_, column) for filter_, column in evaluator.filters_asked(pod, snapshot) if column.status.is_success
    ]
    filters = _refusals(answered, diagnosis)
    scores = evaluator.score(pod, snapshot, diagnosis)
    names, totals = snapshot.nodes.names, dict(zip(scores.rows.tolist(), scores.total.tolist(), strict=True))
    shares = {
        one.plugin: dict(zip(scores.rows.tolist(), (one.scores * one.weight).tolist(), strict=True))
        for one in scores.shares
    }
    rows = sorted(range(len(names)), key=lambda row: (-totals.get(row, -1), len(filters.get(row, ())), names[row]))
    everything = [
        {
            "node": names[row],
            "refused": filters.get(row, {}),
            "scores": {plugin: found[row] for plugin, found in shares.items() if row in found},
            "total": totals.get(row),
        }
        for row in rows
    ]
    refusers = list(dict.fromkeys(name for one in filters.values() for name in one))
    weighted = {one["node"]: one["scores"] for one in everything[:BEST] if one["total"] is not None}
    return {
        "refused_whole": diagnosis.pre_filter,
        "feasible": len(totals),
        "nodes": len(names),
        "refusers": refusers,
        "passing": [filter_.name for filter_, _ in answered if filter_.name not in refusers],
        "scorers": list(shares),
        "now_stacks": _stacks({"scores": weighted, "tiers": sorted(evaluator.profile.tiers)}),
        "by_rule": [(name, sum(name in one for one in filters.values())) for name in refusers],
        "verdicts": part(_chosen(everything, asked), asked, _keys(asked)),
    }


def _refusals(answered: Iterable[tuple[FilterPlugin, PluginColumn]], diagnosis: Diagnosis) -> dict[int, dict[str, str]]:
    """Row -> rule -> reason, of every rule that refuses the node; not only of the first."""
    found: dict[int, dict[str, str]] = {}
    for plugin, column in answered:
        for row in column.values.nonzero()[0].tolist():
            reasons = column.refusals[column.values[row] - 1].reasons_at(row)
            found.setdefault(row, {})[plugin.name] = ", ".join(reasons)
    feasible = set(diagnosis.feasible.tolist())
    for row in range(diagnosis.nodes):
        if row not in feasible and row not in found:
            status = diagnosis.refusal(row)
            found[row] = {status.plugin or "the pod's spec": status.message}
    return found


def _chosen(everything: Sequence[Mapping[str, Any]], asked: Asked) -> list[Mapping[str, Any]]:
    """Those that the query asks for: `fits`, `refused`, or those that one rule refuses; by name."""
    show, rule, looked_for = (asked.query.get(name, "") for name in ("show", "rule", "node"))
    return [
        one
        for one in everything
        if looked_for in one["node"]
        and (not rule or rule in one["refused"])
        and (show not in ("fits", "refused") or (show == "fits") == (not one["refused"]))
    ]


def _keys(asked: Asked) -> dict[str, Any]:
    """What the table can be sorted by: the node, the total, and any rule's score or reason."""
    rule = asked.query.get("sort", "").removeprefix("-")
    return {
        rule: lambda one: (one["scores"].get(rule, -1), one["refused"].get(rule, "")),
        "node": lambda one: one["node"],
        "total": lambda one: (one["total"] is not None, one["total"] or 0),
    }


def _stacks(why: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """`{node, total, pieces}`: the best nodes' scores as bars. A piece is (rule, weighted score, left edge, width,
    colour), edges in percent of the longest bar. What tiers add is as large as all the rest together, and is left
    out."""
    if not why or not why["scores"]:
        return []
    tiers = set(why.get("tiers", ()))
    scores = {
        node: {rule: score for rule, score in shares.items() if rule not in tiers}
        for node, shares in list(why["scores"].items())[:BEST]
    }
    rules = list(dict.fromkeys(rule for shares in scores.values() for rule in shares))
    longest = max((sum(max(0, score) for score in shares.values()) for shares in scores.values()), default=0) or 1
    found = []
    for node, shares in scores.items():
        pieces, left = [], 0.0
        for number, rule in enumerate(rules):
            width = 100.0 * max(0, shares.get(rule, 0)) / longest
            pieces.append((rule, shares.get(rule, 0), round(left, 3), round(width, 3), number % COLOURS))
            left += width
        found.append({"node": node, "total": sum(why["scores"][node].values()), "pieces": pieces})
    return found


def _remedies(state: SchedulerState, profile: Profile, pod: PodInfo, moment: Moment, asked: Asked) -> dict[str, Any]:
    """`{found, why_not}`: the changes after which the pod would have a node, or why they are not sought here."""
    if moment.leads is not None and state.view.nodes.n > MOST_NODES:
        told = f"this scheduler has more than {MOST_NODES} nodes to look after; ask it this way:"
        return {"found": [], "why_not": told}
    end = asked.monotonic() + SECONDS
    found = suggest(Evaluator(profile), pod, state.view, lambda: asked.monotonic() > end)
    told = "Nothing was found in the time there is for it; ask this way:" if asked.monotonic() > end else ""
    return {"found": found, "why_not": told}
