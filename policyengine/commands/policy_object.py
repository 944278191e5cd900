"""Manifests of SchedulingPolicies, made of policy files, or of ConfigMaps with all that their annotations say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from policyengine import plain_yaml
from policyengine.cluster.kinds import CONFIG_MAPS, SCHEDULING_POLICIES
from policyengine.cluster.objects import ObjectError, ObjectMeta, decode
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.commands.manifests import read_text
from policyengine.commands.options import UnusableInput
from policyengine.commands.policy_files import MANIFESTS, texts_and_errors
from policyengine.kube.policies.config_map import ConfigMapSource
from policyengine.kube.policies.params_file import PARAMS_FILE, read_params
from policyengine.kube.policies.rollout_settings import BUDGET, NAMESPACES, PERCENT, SAMPLE, BadSetting
from policyengine.kube.policies.sources import POLICY_SUFFIX

_NAME = re.compile("[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
"""RFC 1123, as the API server asks of it."""


def scheduling_policies(path: Path) -> str:
    """The manifests, in YAML. The policies of files become one object, each ConfigMap one of its own.

    Raises:
        SourceError: the path cannot be read, or holds no policy.
        UnusableInput: a ConfigMap makes no sense.
    """
    found = _config_maps(path) if path.suffix in MANIFESTS else [_of_files(path)]
    try:
        items = [_manifest(ConfigMapSource(one)) for one in found]
    except (BadSetting, plain_yaml.PlainYamlError) as error:
        raise UnusableInput(f"`{path}`: {error}") from None
    if not items:
        raise UnusableInput(f"`{path}` holds no ConfigMap")
    return plain_yaml.written(*items)


def _of_files(path: Path) -> ConfigMap:
    texts, errors = texts_and_errors([str(path)])
    if errors:
        raise errors[0]
    data = {Path(text.source.file).name: text.source.text for text in texts if not text.starts}
    if len(data) < len(texts):
        raise UnusableInput(f"`{path}` holds manifests too, or two files of one name; name one file at a time")
    name = path.absolute().stem
    if not _NAME.fullmatch(name):
        raise UnusableInput(f"`{name}` is no name of an object: small letters, digits, `-` and `.`; rename `{path}`")
    other = next((one for one in data if not one.endswith(POLICY_SUFFIX)), None)
    if other is not None:
        raise UnusableInput(
            f"`{other}` is no key of a SchedulingPolicy, which ends in `{POLICY_SUFFIX}`; rename the file"
        )
    return ConfigMap(ObjectMeta(name=name), data)


def _config_maps(path: Path) -> Iterator[ConfigMap]:
    try:
        for document in plain_yaml.documents(read_text(path)):
            item = plain_yaml.plain(document)
            is_list = isinstance(item, Mapping) and isinstance(item.get("items"), list)
            for one in item["items"] if is_list else [item]:
                if isinstance(one, Mapping) and one.get("kind") == CONFIG_MAPS.kind:
                    yield decode(ConfigMap, one)
    except (ObjectError, plain_yaml.PlainYamlError) as error:
        raise UnusableInput(f"`{path}`: {error}") from None


def _manifest(source: ConfigMapSource) -> dict[str, Any]:
    """Raises `BadSetting`, `PlainYamlError`."""
    if source.unusable:
        raise BadSetting(source.unusable)
    params = read_params(source.texts.get(PARAMS_FILE, ""))
    policies = {key: text for key, text in source.texts.items() if key.endswith(POLICY_SUFFIX)}
    spec: dict[str, Any] = {"policies": policies}
    if params:
        spec["params"] = {name: given.value for name, given in params.items()}
    meta = {"name": source.metadata.name}
    if source.metadata.namespace:
        meta["namespace"] = source.metadata.namespace
    head = {"apiVersion": SCHEDULING_POLICIES.api_version, "kind": SCHEDULING_POLICIES.kind, "metadata": meta}
    return {**head, "spec": spec | _tried(source)}


def _tried(source: ConfigMapSource) -> dict[str, Any]:
    """How a candidate is tried, as fields of `spec`."""
    settings, written = source.settings, source.written_settings
    if settings is None:
        return {}
    fields: dict[str, Any] = {"mode": settings.mode.value.capitalize()}
    if SAMPLE in written:
        fields["shadow"] = {"sample": written[SAMPLE]}
    canary: dict[str, Any] = {"percent": written[PERCENT]} if PERCENT in written else {}
    if NAMESPACES in written:
        terms = [
            {"key": term.key, "operator": term.operator} | ({"values": sorted(term.values)} if term.values else {})
            for term in settings.namespaces
        ]
        canary["namespaceSelector"] = {"matchExpressions": terms}
    if canary:
        fields["canary"] = canary
    if BUDGET in written:
        fields["budget"] = plain_yaml.load(str(written[BUDGET]))
    return fields
