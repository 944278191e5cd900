"""Generated policies in generated clusters: every rule says what a naive interpreter says. `make fuzz`.

    python -m tests.fuzz.seeds rules [RULES] [SEED]

A difference is shown with its seed, which makes it again: `python -m tests.fuzz.seeds rules 1 SEED`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.status import Code
from tests.compiler.naive_objects import Cluster, ThePod
from tests.compiler.naive_policy import FAILED, NaivePolicy
from tests.compiler.worlds import drawn_pod, drawn_world, view_of
from tests.fuzz.policies import PolicyWriter, Written

WORLDS, PODS = 2, 2
"""Clusters that a policy is tried in, and pods in each."""


class Asked:
    """One pod, in a policy as it is compiled and as it is interpreted."""

    def __init__(self, written: Written, chance: Random) -> None:
        self.profile = written.profile
        self.naive = NaivePolicy(written.plain, self.profile.policy_hash)
        self._chance = chance

    def differences(self) -> Iterator[str]:
        """What the two disagree about."""
        evaluator = Evaluator(self.profile)
        for _ in range(WORLDS):
            world = drawn_world(self._chance)
            mine = [drawn_pod(self._chance, f"me{number}") for number in range(PODS)]
            view = view_of([*world.manifests(), *(pod.manifest() for pod in mine)])
            cluster = Cluster.of(world, *(pod.manifest() for pod in mine))
            snapshot = view.snapshot()
            for pod in mine:
                told, asked = view.pods[pod.name], cluster.pod(pod.name)
                yield from self._placed(evaluator, told, asked, snapshot)
                yield from self._about(told, asked, snapshot)

    # --- where a pod may go ----------------------------------------------------------------------------------

    def _placed(self, evaluator: Evaluator, told: PodInfo, asked: ThePod, snapshot: Snapshot) -> Iterator[str]:
        diagnosis = evaluator.filter(told, snapshot)
        whole = self.naive.whole(asked)
        feasible = []
        if (diagnosis.pre_filter is None) != (whole is None):
            yield f"{told}: refused as a whole: {diagnosis.pre_filter}, the oracle {whole}"
            return
        for node in asked.cluster.nodes:
            row = snapshot.nodes.row_of[node.name]
            status, want = diagnosis.refusal(row), whole or self.naive.refusal(asked, node)
            if want is None:
                feasible.append(node)
            code = Code.UNSCHEDULABLE if want and want.evictable else Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            says = (status.code, status.plugin, status.message[: len(want.reason)] if want else "")
            if says != ((code, want.rule, want.reason) if want else (Code.SUCCESS, "", "")):
                yield f"{told} on {node.name}: {status}, the oracle {want}"
        if whole is not None or len(feasible) != len(diagnosis.feasible):
            return
        feasible.sort(key=lambda node: snapshot.nodes.row_of[node.name])
        scored = evaluator.score(told, snapshot, diagnosis)
        got = {name: points.tolist() for name, points in scored.per_plugin.items()}
        want_scores = self.naive.scores(asked, feasible) if feasible else {}
        if got != want_scores:
            yield f"{told}: scores {got}, the oracle {want_scores}, of {[node.name for node in feasible]}"
        elif feasible:
            total = [sum(points) for points in zip(*want_scores.values(), strict=True)] or [0] * len(feasible)
            best = [node.name for node, points in zip(feasible, total, strict=True) if points == max(total)]
            choice = evaluator.select_node(told, snapshot)
            if choice is None or choice.node not in best:
                yield f"{told}: {choice} is chosen, the best are {best}"
            elif len(feasible) > 1:
                at = {node.name: place for place, node in enumerate(feasible)}
                wanted = {
                    name: {rule: points[at[name]] for rule, points in want_scores.items()} for name in choice.best
                }
                if choice.weighted() != wanted:
                    yield f"{told}: {choice} is kept, the oracle scores {wanted}"

    # --- what else is said of it -----------------------------------------------------------------------------

    def _about(self, told: PodInfo, asked: ThePod, snapshot: Snapshot) -> Iterator[str]:
        naive, policy, at = self.naive, self.naive.policy, self.naive.place(asked)
        nodes = {node.name: naive.place(asked, node) for node in asked.cluster.nodes}
        pairs: list[tuple[str, Any, Any]] = []
        for gang, rule in zip(self.profile.gangs, policy.gangs, strict=True):
            key = naive.value(rule.key, at) if naive.applies(rule.when, at, failed=True) else FAILED
            pairs.append((f"{rule.name} key", gang.key(told), None if key is FAILED else key))
            most = naive.value(rule.min, at)
            pairs.append(
                (f"{rule.name} min", gang.minimum(told), 1 if most is FAILED else min(max(most, 1), 2**31 - 1))
            )
            timeout, waits = naive.seconds(rule.timeout, at), naive.seconds(rule.waits, at)
            pairs.append((f"{rule.name} timeout", gang.timeout(told), timeout if timeout and timeout > 0 else 60.0))
            pairs.append((f"{rule.name} waits", gang.waits(told), None if waits is None else max(waits, 0.0)))
        for quota, of in zip(self.profile.quotas.rules, policy.quotas, strict=True):
            found, key = quota.of(told), naive.quota_key(of, at.pod)
            pairs.append((f"{of.name} key", None if found is None else found.key or "", key))
            for bound, written in (("guarantee", of.guarantee), ("limit", of.limit or ())):
                want = (
                    None
                    if key is None
                    else {
                        {"storage": "ephemeral-storage"}.get(n, n): a for n, a in naive.amounts(written, at.pod).items()
                    }
                )
                pairs.append((f"{of.name} {bound}", None if found is None else getattr(found, bound), want))
            borrows = of.borrow is not None and naive.applies(of.borrow, at, failed=False)
            pairs.append((f"{of.name} borrow", quota.may_borrow(told, snapshot), borrows))
        for log, line in zip(self.profile.logs, policy.logs, strict=True):
            for name, place in nodes.items():
                says = naive.text(line.message, place) if naive.applies(line.when, place, failed=False) else None
                pairs.append((f"on {line.point}", begins(log.line(told, name, snapshot), says), says))
        for annotation, written in zip(self.profile.annotations, policy.annotations, strict=True):
            for name, place in nodes.items():
                says = naive.text(written.value, place)
                pairs.append((annotation.key, begins(annotation.value(told, name, snapshot), says), says))
        pairs += self._held(told, asked, snapshot)
        pairs += self._going(told, asked, snapshot)
        if self.profile.fair is not None:
            pairs.append(("fair by", self.profile.fair.tenant(told), naive.tenant(asked)))
        for what, got, want in pairs:
            if got != want or type(got) is not type(want):
                yield f"{told}, {what}: {got!r}, the oracle {want!r}"

    def _held(self, told: PodInfo, asked: ThePod, snapshot: Snapshot) -> Iterator[tuple[str, Any, Any]]:
        """What permits say once a pod has waited for two seconds."""
        naive = self.naive
        for plugin, rule in zip(self.profile.permit, naive.policy.permits, strict=True):
            for node in asked.cluster.nodes:
                at = naive.place(asked, node)
                got = plugin.permit(told, node.name, snapshot, 2.0)  # type: ignore[attr-defined]  # rules are permit plugins
                delay = naive.seconds(rule.delay, at)
                if not naive.applies(rule.when, at, failed=True) or naive.value(rule.until, at) is True:
                    want: Any = Code.SUCCESS
                elif rule.delay is not None and delay is None:
                    want = Code.UNSCHEDULABLE
                else:
                    want = Code.SUCCESS if delay is not None and delay <= 2.0 else Code.WAIT
                yield f"{rule.name} on {node.name}", got.status.code, want
                if want is Code.WAIT and rule.timeout is not None:
                    timeout = naive.seconds(rule.timeout, at)
                    if timeout is not None:
                        yield f"{rule.name} timeout", got.timeout, max(timeout, 0.0)

    def _going(self, told: PodInfo, asked: ThePod, snapshot: Snapshot) -> Iterator[tuple[str, Any, Any]]:
        """Who may have to go, and in which order."""
        rule, plugin, naive = self.naive.policy.preempt, self.profile.preempt, self.naive
        if rule is None or plugin is None:
            return
        at, view = naive.place(asked), snapshot._view
        said = plugin(told, view)
        yield "preempt when", said is not None, naive.applies(rule.when, at, failed=False)
        if said is None:
            return
        keys: list[tuple[Any, Any, str]] = []
        for other in asked.cluster.pods:
            if other.node:
                place, victim = naive.place(asked, victim=other), view.pods[other["uid"]]
                may = rule.victims is None or naive.applies(rule.victims, place, failed=False)
                yield f"victim {other['name']}", said.may_go(victim), may
                keys.append((said.turn(victim), naive.order_key(rule.order, place), other["name"]))
        got, want = (sorted(keys, key=lambda key: (key[which], key[2])) for which in (0, 1))
        yield "order of victims", [key[2] for key in got], [key[2] for key in want]
        most = naive.value(rule.max_victims, at)
        yield "maxVictims", said.most, None if most is FAILED else most


def begins(got: str | None, want: str | None) -> str | None:
    """As much of a text as is known of it: why something has no value is said in nobody's words."""
    return got if got is None or want is None or not want.endswith("(") else got[: len(want)]


def rules_in(written: Written) -> int:
    policy = written.plain
    kinds = (
        policy.filters,
        policy.scores,
        policy.gangs,
        policy.quotas,
        policy.permits,
        policy.logs,
        policy.annotations,
    )
    return sum(map(len, kinds)) + (policy.preempt is not None) + 1


def policy_of(seed: int) -> Written | None:
    writer = PolicyWriter(Random(seed), depth=2 + seed % 2)
    writer.rules(10)
    return writer.written()


def tried(seed: int) -> tuple[list[str], dict[str, int]]:
    """What is different for one generated policy, and its rules."""
    written = policy_of(seed)
    if written is None:
        return [], {}
    found = list(Asked(written, Random(seed)).differences())
    lines = [f"seed {seed}: {one}" for one in found[:3]] + [str(written)] * bool(found)
    return lines, {"rules": rules_in(written), "policies": 1}
