"""A ConfigMap that carries policies: which keys and annotations count, and what is written on it.

Its policies stand under keys that end in `.policy`, values of their params under `params.yaml`. What became of them is
written into its annotation `policyengine.io/status`, as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.policies.params_file import PARAMS_FILE
from policyengine.kube.policies.precedence import Problem
from policyengine.kube.policies.rollout_settings import (
    BUDGET,
    MODE,
    NAMESPACES,
    PERCENT,
    SAMPLE,
    Suspension,
    rollout_settings,
)
from policyengine.kube.policies.sources import POLICY_SUFFIX, SUSPENDED, Patch, PolicySource, Report
from policyengine.scheduler.rollout import RolloutSettings

LABEL = "policyengine.io/policy"
LABEL_SELECTOR = f"{LABEL}=true"
STATUS = "policyengine.io/status"
ANNOTATIONS = {
    MODE: "policyengine.io/mode",
    SAMPLE: "policyengine.io/shadow-sample",
    NAMESPACES: "policyengine.io/canary-namespaces",
    PERCENT: "policyengine.io/canary-percent",
    BUDGET: "policyengine.io/budget",
}
"""Setting of a candidate -> the annotation that says it."""
_VERDICT = ("state", "hash", "dataHash", "line", "column", "message")


def annotated_settings(annotations: Mapping[str, str]) -> dict[str, object]:
    """How a candidate is tried, as its annotations say."""
    return {setting: annotations[name] for setting, name in ANNOTATIONS.items() if name in annotations}


class ConfigMapSource(PolicySource):
    """A ConfigMap."""

    KIND = CONFIG_MAPS

    def __init__(self, config_map: ConfigMap) -> None:
        self.metadata = config_map.metadata
        data = config_map.data
        self.texts = {key: text for key, text in sorted(data.items()) if _counts(key)}
        self.unusable = _unusable(data, config_map.binary_data)

    @cached_property
    def version(self) -> str:
        """See `PolicySource`."""
        canonical = json.dumps(self.texts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def written_settings(self) -> Mapping[str, object]:
        """See `PolicySource`."""
        return annotated_settings(self.metadata.annotations)

    @property
    def settings(self) -> RolloutSettings | None:
        """See `PolicySource`."""
        return rollout_settings(self.written_settings, ANNOTATIONS, "annotation ")

    @property
    def verdict(self) -> str:
        """See `PolicySource`."""
        return str(self._status.get("state")) if self._status.get("dataHash") == self.version else ""

    @property
    def is_answered(self) -> bool:
        """See `PolicySource`."""
        return bool(self._status)

    @property
    def said(self) -> str:
        """See `PolicySource`."""
        return str(self._status.get("message") or "") if self.verdict else ""

    @property
    def suspension(self) -> Suspension | None:
        """See `PolicySource`."""
        status = self._status
        rollout = status.get("rollout")
        settings = rollout.get("settings") if isinstance(rollout, dict) else None
        if status.get("state") != SUSPENDED or not isinstance(settings, dict):
            return None
        return Suspension(str(status.get("hash")), settings, str(status.get("message") or "suspended"))

    def says(self, report: Report) -> bool:
        """See `PolicySource`."""
        return _verdict(self._status) == _verdict(_written(report))

    def patch(self, report: Report, now: str) -> Patch:
        """See `PolicySource`."""
        annotations = {STATUS: json.dumps(_written(report))}
        path = CONFIG_MAPS.path(self.metadata.namespace, self.metadata.name)
        return Patch(path, {"metadata": {"annotations": annotations}})

    @cached_property
    def _status(self) -> dict[str, Any]:
        """The status that is written there; empty where none is that can be read."""
        try:
            found = json.loads(self.metadata.annotations.get(STATUS, ""))
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def _counts(key: str) -> bool:
    return key.endswith(POLICY_SUFFIX) or key == PARAMS_FILE


def _unusable(data: Collection[str], binary_data: Collection[str]) -> str:
    for key in sorted(filter(_counts, binary_data)):
        return f"`{key}` stands under `binaryData`, as what is not UTF-8 does: save the file as UTF-8"
    if not any(key.endswith(POLICY_SUFFIX) for key in data):
        return f"the ConfigMap has no key that ends in `{POLICY_SUFFIX}`"
    return ""


def _written(report: Report) -> dict[str, Any]:
    """The status; `dataHash` says which version of the data it speaks of."""
    problem = report.problem or Problem("")
    status: dict[str, Any] = {
        "state": report.state,
        "hash": report.policy_hash,
        "dataHash": report.version,
        "line": problem.line,
        "column": problem.column,
        "message": report.message,
    }
    return status if report.rollout is None else status | {"rollout": report.rollout}


def _verdict(status: Mapping[str, Any]) -> tuple[object, ...]:
    """What of a status is a verdict: all but the counts."""
    rollout = status.get("rollout")
    return *(status.get(name) for name in _VERDICT), rollout.get("settings") if isinstance(rollout, dict) else None
