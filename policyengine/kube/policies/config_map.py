"""A ConfigMap that carries policies: which keys and annotations count, and what is written on it.

Its policies stand under keys that end in `.policy`, values of their params under `params.yaml`. What became of them is
written into its annotation `policyengine.io/status`, as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.policies.params_file import PARAMS_FILE
from policyengine.kube.policies.precedence import Problem
from policyengine.kube.policies.rollout_settings import BUDGET, MODE, NAMESPACES, PERCENT, SAMPLE
from policyengine.kube.policies.sources import (
    POLICY_SUFFIX,
    SUSPENDED,
    Patch,
    PolicySource,
    Report,
    suspension_in,
    tried_in,
)

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

    KIND, SETTINGS, WRITTEN_IN = CONFIG_MAPS, ANNOTATIONS, "annotation "

    def __init__(self, config_map: ConfigMap) -> None:
        data, annotations = config_map.data, config_map.metadata.annotations
        self.metadata = config_map.metadata
        self.texts = {key: text for key, text in sorted(data.items()) if _counts(key)}
        self.unusable = _unusable(data, config_map.binary_data)
        canonical = json.dumps(self.texts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        # A text may hold half of a surrogate pair, which is no UTF-8: it is refused where it is read, not here.
        self.version = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
        self.written_settings = annotated_settings(annotations)
        self.status = status = _status_in(annotations.get(STATUS, ""))
        self.verdict = str(status.get("state")) if status.get("dataHash") == self.version else ""
        self.is_answered = bool(status)
        message = str(status.get("message") or "")
        self.said = message if self.verdict else ""
        is_suspended = status.get("state") == SUSPENDED
        self.suspension = suspension_in(status, message or "suspended") if is_suspended else None

    @staticmethod
    def verdict_of(status: Mapping[str, Any]) -> tuple[object, ...]:
        """See `PolicySource`."""
        return *(status.get(name) for name in _VERDICT), tried_in(status)

    def answer(self, report: Report, now: str) -> dict[str, Any]:
        """See `PolicySource`. `dataHash` says which version of the data it speaks of."""
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

    def patch(self, report: Report, now: str) -> Patch:
        """See `PolicySource`."""
        annotations = {STATUS: json.dumps(self.answer(report, now))}
        path = CONFIG_MAPS.path(self.metadata.namespace, self.metadata.name)
        return Patch(path, {"metadata": {"annotations": annotations}})


def _status_in(text: str) -> dict[str, Any]:
    """The status that an annotation holds; empty where it holds none that can be read."""
    try:
        found = json.loads(text)
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
