"""A ConfigMap that carries policies: which keys and annotations count, and what is written on it.

`params.yaml` beside the policies gives values for their params, one a line: `headroom: 4Gi`, `safe.zones: [a, b]`.
What a value must be, the param says; here it is read as YAML alone. Dates stay the text they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import yaml

from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.policies.precedence import Problem, Standing
from policyengine.plain_yaml import PlainYamlError, documents, plain

LABEL_SELECTOR = "policyengine.io/policy=true"
STATUS = "policyengine.io/status"
MODE = "policyengine.io/mode"
SHADOW_SAMPLE = "policyengine.io/shadow-sample"
CANARY_NAMESPACES = "policyengine.io/canary-namespaces"
CANARY_PERCENT = "policyengine.io/canary-percent"
BUDGET = "policyengine.io/budget"
ROLLOUT = (MODE, SHADOW_SAMPLE, CANARY_NAMESPACES, CANARY_PERCENT, BUDGET)
"""The annotations that say how a candidate is tried."""
DEFAULT_NAMESPACE = "kube-system"
POLICY_SUFFIX = ".policy"

ACCEPTED, REJECTED, SUSPENDED = "accepted", "rejected", "suspended"


def texts(data: Mapping[str, str]) -> dict[str, str]:
    """What the keys of a ConfigMap say of policies, by key."""
    return {key: text for key, text in sorted(data.items()) if key.endswith(POLICY_SUFFIX) or key == PARAMS_FILE}


def unusable(data: Collection[str], binary_data: Collection[str]) -> str:
    """What is wrong with the keys of a ConfigMap, as text and as binary data; empty where nothing is."""
    for key in sorted(binary_data):
        if key.endswith(POLICY_SUFFIX) or key == PARAMS_FILE:
            return f"`{key}` stands under `binaryData`, as what is not UTF-8 does: save the file as UTF-8"
    if not any(key.endswith(POLICY_SUFFIX) for key in data):
        return f"the ConfigMap has no key that ends in `{POLICY_SUFFIX}`"
    return ""


def settings(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that say how a candidate is tried, as they are written."""
    return {name: annotations[name] for name in ROLLOUT if name in annotations}


def content(config_map: ConfigMap) -> tuple[object, ...]:
    """What a new version must differ in to be looked at again."""
    metadata = config_map.metadata
    return metadata.uid, settings(metadata.annotations), texts(config_map.data), texts(config_map.binary_data)


def status_of(config_map: ConfigMap, standing: Standing) -> dict[str, Any]:
    """The annotation `policyengine.io/status`; `dataHash` says which version of the data it speaks of."""
    problem = standing.problem or Problem("")
    return {
        "state": ACCEPTED if standing.accepted else REJECTED,
        "hash": standing.policy_hash,
        "dataHash": _data_hash(config_map),
        "line": problem.line,
        "column": problem.column,
        "message": problem.message or standing.note,
    }


def annotated(config_map: ConfigMap) -> dict[str, Any]:
    """The status that is written there; empty where none is that can be read."""
    try:
        found = json.loads(config_map.metadata.annotations.get(STATUS, ""))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def verdict(config_map: ConfigMap) -> str:
    """The state that its status says its texts are in; empty where it says nothing of these."""
    status = annotated(config_map)
    return str(status.get("state")) if status.get("dataHash") == _data_hash(config_map) else ""


def _data_hash(config_map: ConfigMap) -> str:
    canonical = json.dumps(texts(config_map.data), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


PARAMS_FILE = "params.yaml"
LARGEST = 1 << 20
_TAG = "tag:yaml.org,2002:"


class Given(NamedTuple):
    """A value, and where its name stands."""

    value: object
    line: int
    column: int


def read_params(text: str) -> Mapping[str, Given]:
    """The values by the params' full names.

    Raises:
        PlainYamlError: the text is no plain YAML, no mapping of names to values, or names a param twice.
    """
    if len(text) > LARGEST:
        raise PlainYamlError("is larger than 1 MiB")
    found = documents(text)
    if not found or (len(found) == 1 and found[0].tag == f"{_TAG}null"):
        return {}
    root = found[0]
    if len(found) > 1 or not isinstance(root, yaml.MappingNode):
        raise PlainYamlError("is no mapping of params to values, such as `headroom: 4Gi`", root.start_mark.line + 1)
    given: dict[str, Given] = {}
    for key, value in root.value:
        line, column = key.start_mark.line + 1, key.start_mark.column + 1
        if not isinstance(key, yaml.ScalarNode):
            raise PlainYamlError(f"names a param by something that is no name on line {line}", line)
        if key.value in given:
            raise PlainYamlError(f"gives `{key.value}` twice, again on line {line}", line)
        given[key.value] = Given(plain(value), line, column)
    return given
