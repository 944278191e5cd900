"""An object that carries policies, whichever its kind: a ConfigMap (`config_map`) or a SchedulingPolicy
(`scheduling_policy`). All that is not about one form alone works on these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from policyengine.cluster.kinds import Kind
from policyengine.cluster.objects import ObjectMeta
from policyengine.kube.policies.precedence import Problem, SourceKey
from policyengine.kube.policies.rollout_settings import Suspension, rollout_settings
from policyengine.scheduler.rollout import RolloutSettings

DEFAULT_NAMESPACE = "kube-system"
POLICY_SUFFIX = ".policy"

ACCEPTED, REJECTED, SUSPENDED = "accepted", "rejected", "suspended"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a source, as its status says it. Two that differ in counts alone are equal."""

    version: object
    """Of the source's texts."""
    state: str
    """`accepted`, `rejected` or `suspended`."""
    how: str
    """Whether it serves, and how: see `precedence`."""
    policy_hash: str
    scheduler_names: tuple[str, ...] = ()
    problem: Problem | None = None
    note: str = ""
    """What is to be known where there is no problem."""
    tried: Mapping[str, Any] | None = None
    """How a candidate is tried."""
    counts: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What was found of a candidate so far."""

    @property
    def message(self) -> str:
        """One sentence."""
        return self.problem.message if self.problem is not None else self.note

    @property
    def rollout(self) -> dict[str, Any] | None:
        """How a candidate is tried, and what was found of it."""
        return None if self.tried is None else {"settings": self.tried, **self.counts}


class Patch(NamedTuple):
    """A request that writes a status."""

    path: str
    body: Mapping[str, Any] | list[Any]
    content: str = ""
    """The form of the body; empty for a JSON merge patch."""


class PolicySource(ABC):
    """One version of an object that carries policies."""

    KIND: ClassVar[Kind[Any]]
    SETTINGS: ClassVar[Mapping[str, str]]
    """Setting of a candidate -> where it is written."""
    WRITTEN_IN: ClassVar[str] = ""
    """What these places are, and a space."""
    metadata: ObjectMeta
    texts: Mapping[str, str]
    """Policies by their names, which end in `.policy`, and perhaps values of params under another name."""
    unusable: str
    """What is wrong with the object before any text is read; empty where nothing is."""
    version: object
    """What a status calls these texts."""
    written_settings: Mapping[str, object]
    """How it is tried, as it is written."""
    status: Mapping[str, Any]
    """What a scheduler has said of it; empty where none has."""
    verdict: str
    """The state that its status says these texts are in; empty where it says nothing of them."""
    is_answered: bool
    """Whether a scheduler has written a status, of these texts or of earlier ones."""
    said: str
    """What its status says of these texts; empty where it says nothing."""
    suspension: Suspension | None
    """What its status says was suspended."""

    @property
    def key(self) -> SourceKey:
        """Which object it is."""
        return SourceKey(self.metadata.namespace, self.metadata.name, self.KIND.kind)

    @property
    def content(self) -> tuple[object, ...]:
        """What a new version must differ in to be looked at again."""
        return self.metadata.uid, self.written_settings, self.texts, self.unusable

    @property
    def settings(self) -> RolloutSettings | None:
        """How it is tried; None where it asks to serve. Raises `BadSetting`."""
        return rollout_settings(self.written_settings, self.SETTINGS, self.WRITTEN_IN)

    def says(self, report: Report) -> bool:
        """Whether its status says this already, but for counts."""
        return self.verdict_of(self.status) == self.verdict_of(self.answer(report, ""))

    @staticmethod
    @abstractmethod
    def verdict_of(status: Mapping[str, Any]) -> tuple[object, ...]:
        """What of a status is a verdict: all but counts and times."""

    @abstractmethod
    def answer(self, report: Report, now: str) -> dict[str, Any]:
        """The status that says this. `now`: RFC 3339, in seconds."""

    @abstractmethod
    def patch(self, report: Report, now: str) -> Patch:
        """What has its status say this."""


def tried_in(status: Mapping[str, Any]) -> Any:
    """How a candidate is tried, as a status says it."""
    rollout = status.get("rollout")
    return rollout.get("settings") if isinstance(rollout, dict) else None


def suspension_in(status: Mapping[str, Any], why: str) -> Suspension | None:
    """What a status says was suspended, and why, where it says how that was tried."""
    settings = tried_in(status)
    return Suspension(str(status.get("hash")), settings, why) if isinstance(settings, dict) else None
