"""A candidate: a policy that is tried beside the one that serves a scheduler name, and what was found.

    trying ──a budget is exceeded, or a decision fails──> suspended

Rules:
1. The queue is the serving policy's: its gates, its order, its gangs and its tenants hold for every pod. A candidate
   has its own filters, scores, quotas, preemption, reservations, permits and annotations.
2. A canary takes a pod by its namespace and by the hash of its gang, else of its owner, else of itself: what belongs
   together is decided about by one policy, the same at every attempt.
3. One decision is one policy's, whose hash it bears.
4. A suspended candidate decides nothing and is compared no more. It stays so until it is loaded anew.
5. Nothing here decides anything about a pod of the serving policy.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from policyengine.cluster.journal import stable_hash
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.profile import Profile
from policyengine.plugins.selectors.label_selector import Requirement
from policyengine.scheduler.queue.gang_table import Gang

SAMPLES = 5
"""Differences that are kept to be shown: the last ones."""
RULES = 100
"""Rules by which differences are counted; what other rules cause is counted under `OTHERS`."""
OTHERS = "others"
LONGEST_REASON = 500
"""Characters; an exception may say anything."""
_WHOLE = 2**64


class Mode(Enum):
    """How a candidate is tried."""

    SHADOW = "shadow"
    """It decides nothing: what it would have decided is compared."""
    CANARY = "canary"
    """It decides about some of the pods."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a candidate may cost. Shares are of pods, between 0 and 1; None allows anything."""

    unschedulable: float | None = None
    """Of the pods that it decided about, those that it refused last."""
    divergence: float | None = None
    """Of the pods that were compared, those that would be on another node, or on one or none."""
    cycle_time: float | None = 0.05
    """Seconds of its decisions, on average."""
    window: float = 600.0
    """Seconds that are looked back."""
    least: int = 20
    """Pods in the window below which nothing is said of shares and averages."""


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How one candidate is tried."""

    mode: Mode
    sample: float = 1.0
    """The share of pods whose decisions are compared."""
    share: float = 1.0
    """The share of pods, by owner, that a canary decides about."""
    namespaces: tuple[Requirement, ...] = ()
    """Which namespaces' pods these are; all of them where there is no term."""
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Difference:
    """What two policies make of one pod on one snapshot."""

    pod: str
    """`namespace/name`."""
    live: str
    """The node that the serving policy takes; "" for none."""
    candidate: str
    feasible: tuple[int, int]
    """How many nodes may hold the pod: by the serving policy, by the candidate."""
    same_feasible: bool
    """Whether these are the same nodes."""
    rules: tuple[str, ...]
    """The rules and plugins that make the difference, by name; of the candidate, or that it has no more."""

    @property
    def same_node(self) -> bool:
        """Whether the pod goes to the same node, or to none."""
        return self.live == self.candidate


MOST_PODS = 10_000
"""Pods that a window remembers; older ones are forgotten before their time."""


class SlidingWindow:
    """Values by pod, those of the last `window` seconds, and their sum."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._values: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._sum = 0.0

    def note(self, uid: str, value: float, now: float) -> None:
        """This is what is true of the pod now."""
        _, before = self._values.pop(uid, (now, 0.0))
        self._values[uid] = (now, value)
        self._sum += value - before
        if len(self._values) > MOST_PODS:
            self._drop_oldest()

    def mean(self, now: float, least: int) -> float | None:
        """The average over the pods; None where there are fewer than `least`."""
        while self._values and next(iter(self._values.values()))[0] < now - self._window:
            self._drop_oldest()
        return None if len(self._values) < max(1, least) else self._sum / len(self._values)

    def _drop_oldest(self) -> None:
        _, (_, value) = self._values.popitem(last=False)
        self._sum = self._sum - value if self._values else 0.0


@dataclass(frozen=True, slots=True)
class Decided:
    """The last decision about a pod whose scheduler name has a candidate."""

    scheduler_name: str
    rollout: Rollout
    pod: PodInfo
    placed: tuple[str, ...]
    """UIDs of the pods that it placed."""
    by_candidate: bool


class Rollout:
    """One candidate at work."""

    def __init__(self, profile: Profile, settings: RolloutSettings) -> None:
        self.profile = profile
        self.settings = settings
        self.suspended = ""
        """Why it is tried no more; empty while it is."""
        self.start_over()

    def start_over(self) -> None:
        """Forget what was found: another policy serves now, or none did."""
        window = self.settings.budget.window
        self.compared = self.other_node = self.other_feasible = 0
        self.decided = self.refused = 0
        self.by_rule: Counter[str] = Counter()
        self.samples: deque[Difference] = deque(maxlen=SAMPLES)
        self._refusals, self._differences, self._times = (SlidingWindow(window) for _ in range(3))

    @property
    def is_canary(self) -> bool:
        """Whether it decides about pods."""
        return self.settings.mode is Mode.CANARY

    @property
    def is_tried(self) -> bool:
        """Whether it decides about pods, or is compared."""
        return not self.suspended

    @property
    def decides(self) -> bool:
        """Whether it decides about pods now."""
        return self.is_canary and self.is_tried

    @property
    def agreement(self) -> float | None:
        """The share of compared decisions that would put the pod on the same node; None before the first."""
        return 1 - self.other_node / self.compared if self.compared else None

    def takes(self, pod: PodInfo, gang: Gang | None, labels: Mapping[str, str]) -> bool:
        """Whether it is to decide about the pod. `labels`: of the pod's namespace."""
        if self.suspended or not self.is_canary:
            return False
        if not all(term.matches(labels) for term in self.settings.namespaces):
            return False
        return self.settings.share >= 1 or _fraction(_whose(pod, gang)) < self.settings.share

    def compares(self, pod: PodInfo, by_candidate: bool) -> bool:
        """Whether a decision about the pod is to be compared: a shadow's with the serving policy's, a canary's own."""
        if self.suspended or self.is_canary is not by_candidate:
            return False
        return self.settings.sample >= 1 or _fraction(f"sample {pod.uid}") < self.settings.sample

    def note_decision(self, uid: str, refused: bool, now: float) -> None:
        """It decided about a pod."""
        self.decided += 1
        self.refused += refused
        self._refusals.note(uid, refused, now)
        share = self._refusals.mean(now, self.settings.budget.least)
        self._hold_to(self.settings.budget.unschedulable, share, "of the pods that it decided about are refused")

    def note_comparison(self, uid: str, found: Difference, now: float) -> None:
        """A decision was compared."""
        self.compared += 1
        self.other_node += not found.same_node
        self.other_feasible += not found.same_feasible
        if not found.same_node or not found.same_feasible:
            self.samples.append(found)
            for rule in found.rules:
                self.by_rule[rule if rule in self.by_rule or len(self.by_rule) < RULES else OTHERS] += 1
        self._differences.note(uid, not found.same_node, now)
        share = self._differences.mean(now, self.settings.budget.least)
        self._hold_to(self.settings.budget.divergence, share, "of the compared pods go elsewhere")

    def note_time(self, uid: str, seconds: float, now: float) -> None:
        """A decision of it, or a comparison, took so long."""
        self._times.note(uid, seconds, now)
        budget = self.settings.budget
        mean = self._times.mean(now, budget.least)
        if budget.cycle_time is not None and mean is not None and mean > budget.cycle_time:
            self.suspend(f"a decision takes {mean * 1e3:.3g} ms, more than {budget.cycle_time * 1e3:.3g} ms")

    def suspend(self, reason: str) -> None:
        """Try it no more; the first reason stands."""
        self.suspended = self.suspended or reason[:LONGEST_REASON]

    def _hold_to(self, limit: float | None, share: float | None, what: str) -> None:
        if limit is not None and share is not None and share > limit:
            self.suspend(f"{share:.1%} {what}, more than {limit:.1%}")


def _whose(pod: PodInfo, gang: Gang | None) -> str:
    if gang is not None:
        return f"{gang.rule} {gang.key}"
    owner = pod.owner
    return owner.uid if owner is not None and owner.uid else pod.uid


def _fraction(text: str) -> float:
    """A number in [0, 1), the same for the same text in every process."""
    return stable_hash(text) / _WHOLE
