"""What could be done about a rule or a quota of the policy, found by trying: a label that it asks for, less of a
resource, a param within its range, a larger amount."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np

from policyengine.diagnosis import kubectl_commands
from policyengine.diagnosis.changed_spec import requesting
from policyengine.diagnosis.node_remedies import is_of_kubernetes, with_labels
from policyengine.diagnosis.victims import free_room, places, roomiest
from policyengine.diagnosis.what_if import Attempt, Change, WhatIf
from policyengine.framework.profile import Profile, RangedParam, Tuning
from policyengine.framework.status import Rows
from policyengine.quantity import format_amount

KEYS: Final = 4
VALUES: Final = 4
"""Labels that are tried: so many keys, so many values of each, the most frequent first."""
PARAMS: Final = 8
"""Params that are tried."""
_TRIES: Final = 14
"""Steps of a search for the largest request, or the nearest param, that helps: within a ten-thousandth."""


def rule(attempt: Attempt, what_if: WhatIf, rows: Rows, name: str) -> Iterator[Attempt]:
    """About a filter of the policy."""
    yield from less(attempt, what_if)
    yield from free_room(attempt, what_if, rows)
    yield from _labels(attempt, what_if, rows, name)


def less(attempt: Attempt, what_if: WhatIf) -> Iterator[Attempt]:
    """The largest request that some node lets pass, resource by resource; of a gang, one that leaves room for all."""
    for resource, had in attempt.pod.shape.amounts:
        best: Attempt | None = None
        least, most = 1, had - 1
        for _ in range(_TRIES):
            if least > most:
                break
            middle = (least + most + 1) // 2
            tried = requested(attempt, resource, had, _round(resource, middle))
            if tried is None:
                break
            if _fit_together(tried, what_if):
                best, least = tried, middle + 1
            else:
                most = middle - 1
        if best is not None:
            yield best


def _fit_together(attempt: Attempt, what_if: WhatIf) -> bool:
    """Whether the pod fits; of a gang, whether all of its members do that have no room yet, as far as sums tell."""
    rows = what_if.feasible(attempt)
    if what_if.short(attempt) == 1 or not len(rows):
        return len(rows) > 0
    with what_if.cluster_of(attempt) as snapshot:
        return places(dict(attempt.pod.shape.amounts), snapshot.nodes, rows) >= what_if.short(attempt)


def requested(attempt: Attempt, resource: str, had: int, now: int) -> Attempt | None:
    """The attempt with less of a resource asked for, or still less than before; None where that cannot be had."""
    if requesting(attempt.pod.shape.spec, resource, now) is None:
        return None
    before, after, cost = format_amount(resource, had), format_amount(resource, now), 1 + (had - now) / had
    for earlier in attempt.changes:
        if (earlier.kind, earlier.subject) == ("request", resource):
            before, cost = earlier.detail["from"], cost + earlier.cost - 1
            attempt = replace(attempt, changes=tuple(one for one in attempt.changes if one is not earlier))
    detail = {"resource": resource, "from": before, "to": after}
    change = Change("request", resource, f"request {after} {resource} instead of {before}", cost, detail)
    return attempt.with_spec(change, lambda spec: requesting(spec, resource, now) or spec)


def _round(resource: str, amount: int) -> int:
    """Down to what one would write: 10m of cpu, 1Mi of memory; never to nothing."""
    grain = {"cpu": 10, "memory": 1 << 20, "ephemeral-storage": 1 << 20}.get(resource, 1)
    return amount // grain * grain or amount


def _labels(attempt: Attempt, what_if: WhatIf, rows: Rows, name: str) -> Iterator[Attempt]:
    """A label that the rule asks for by its key: with the value that others have."""
    evaluator = what_if.evaluator(attempt)
    tuning = None if evaluator is None else evaluator.profile.tuning
    if tuning is None:
        return
    of_pod, of_node = tuning.labels_read(name)
    view, pod = what_if.view, attempt.pod
    for key in of_pod[:KEYS]:
        seen = Counter(other.labels[key] for other in view.pods.values() if key in other.labels)
        nodes = Counter(node.metadata.labels.get(key) for node in view.nodes.objects)
        for value in _frequent(seen + Counter({text: n for text, n in nodes.items() if text is not None})):
            if pod.labels.get(key) != value:
                detail = {"pod": pod.key, "key": key, "value": value}
                line = kubectl_commands.label("pod", attempt.names, key, value, pod.namespace)
                change = Change("label", f"pod {key}", f"label the pod {key}={value}", 1.4, detail, line)
                yield attempt.with_label(change, key, value)
    for key in of_node[:KEYS]:
        if is_of_kubernetes(key):
            continue
        seen = Counter(node.metadata.labels[key] for node in view.nodes.objects if key in node.metadata.labels)
        own = {text: 1 for name_, text in pod.labels.items() if name_ in (key, *of_pod)}
        for row in roomiest(attempt, what_if, rows):
            for value in _frequent(seen + Counter(own)):
                yield with_labels(attempt, what_if.node(attempt, row), {key: value})


def _frequent(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda text: (-counts[text], text))[:VALUES]


def quota(attempt: Attempt, what_if: WhatIf) -> Iterator[Attempt]:
    """About a quota that refuses the pod, or its gang: a larger amount, less asked for, others of the quota gone."""
    evaluator = what_if.evaluator(attempt)
    if evaluator is None:
        return
    profile, pod = evaluator.profile, attempt.pod
    with what_if.cluster_of(attempt) as snapshot:
        found = profile.quotas.exceeded(pod, snapshot, what_if.short(attempt))
        if found is not None:
            exceeded, bound, amounts = found
            changed = attempt
            for resource, amount in amounts.items():
                before, after = (format_amount(resource, one) for one in (getattr(exceeded, bound)[resource], amount))
                text = f"raise the {bound} of quota {exceeded.name} from {before} to {after} {resource}"
                which = {"quota": exceeded.rule.name, "key": exceeded.key}
                detail = {**which, "bound": bound, "resource": resource, "from": before, "to": after}
                change = Change("quota", f"{exceeded.name} {resource}", text, 1.5, detail)
                current = changed.profile or profile
                raised = replace(current, quotas=current.quotas.raised(exceeded, bound, {resource: amount}))
                changed = changed.also(change, profile=raised)
    if found is not None:
        yield changed
        group, placed = found[0].group, [other for other in what_if.view.pods.values() if other.node_name]
        users = {other.node_name for other in placed if group in profile.quotas.groups(other)}
        row_of = what_if.view.nodes.row_of
        rows = np.array(sorted(row_of[name] for name in users if name in row_of), dtype=np.int64)
        yield from free_room(attempt, what_if, rows)
    yield from less(attempt, what_if)


def params(attempt: Attempt, what_if: WhatIf) -> Iterator[Attempt]:
    """A param of the policy with the value nearest to its own that helps, within its range. Where a value is not the
    evaluator's to judge (how long a pod is held, how many a gang takes), the ends of the range."""
    evaluator = what_if.evaluator(attempt)
    if evaluator is None or attempt.profile is not None or evaluator.profile.tuning is None:
        return
    profile, tuning = evaluator.profile, evaluator.profile.tuning
    undecided = what_if.fits(attempt)
    for param in islice(tuning.params(), PARAMS):
        for end in dict.fromkeys((param.least, param.most)):
            if end == param.value:
                continue
            tried = _tuned(attempt, profile, tuning, param, end)
            if tried is None or (not undecided and not what_if.fits(tried)):
                continue
            yield tried if undecided else _nearest(attempt, what_if, tried, param, end)


def _nearest(attempt: Attempt, what_if: WhatIf, best: Attempt, param: RangedParam, end: float) -> Attempt:
    """Half way between what does not help and what does, again and again."""
    evaluator = what_if.evaluator(attempt)
    assert evaluator is not None and evaluator.profile.tuning is not None
    bad, good = param.value, end
    for _ in range(_TRIES):
        grain = param.grain
        middle = int(bad + good) // 2 // grain * grain if grain else round((bad + good) / 2, 3)
        if not min(bad, good) < middle < max(bad, good):
            break
        tried = _tuned(attempt, evaluator.profile, evaluator.profile.tuning, param, middle)
        if tried is None:
            break
        if what_if.fits(tried):
            best, good = tried, middle
        else:
            bad = middle
    return best


def _tuned(attempt: Attempt, profile: Profile, tuning: Tuning, param: RangedParam, value: float) -> Attempt | None:
    before, after = tuning.text(param.name, param.value), tuning.text(param.name, value)
    made = None if after is None else tuning.tuned(param.name, value)
    if made is None:
        return None
    detail = {"policy": profile.name, "param": param.name, "from": before, "to": after}
    text = f"set param {param.name} of policy {profile.name} to {after} instead of {before}"
    return attempt.also(Change("param", param.name, text, 1.5, detail), profile=made)
