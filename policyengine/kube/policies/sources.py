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
from policyengine.kube.policies.rollout_settings import Suspension
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
    metadata: ObjectMeta
    texts: Mapping[str, str]
    """Policies by their names, which end in `.policy`, and perhaps values of params under another name."""
    unusable: str
    """What is wrong with the object before any text is read; empty where nothing is."""

    @property
    def key(self) -> SourceKey:
        """Which object it is."""
        return SourceKey(self.metadata.namespace, self.metadata.name, self.KIND.kind)

    @property
    def content(self) -> tuple[object, ...]:
        """What a new version must differ in to be looked at again."""
        return self.metadata.uid, self.written_settings, self.texts, self.unusable

    @property
    @abstractmethod
    def version(self) -> object:
        """What a status calls these texts."""

    @property
    @abstractmethod
    def written_settings(self) -> Mapping[str, object]:
        """How it is tried, as it is written."""

    @property
    @abstractmethod
    def settings(self) -> RolloutSettings | None:
        """How it is tried; None where it asks to serve. Raises `BadSetting`."""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """The state that its status says these texts are in; empty where it says nothing of them."""

    @property
    @abstractmethod
    def is_answered(self) -> bool:
        """Whether a scheduler has written a status, of these texts or of earlier ones."""

    @property
    @abstractmethod
    def said(self) -> str:
        """What its status says of these texts; empty where it says nothing."""

    @property
    @abstractmethod
    def suspension(self) -> Suspension | None:
        """What its status says was suspended."""

    @abstractmethod
    def says(self, report: Report) -> bool:
        """Whether its status says this already, but for counts."""

    @abstractmethod
    def patch(self, report: Report, now: str) -> Patch:
        """What has its status say this. `now`: RFC 3339, in seconds."""
