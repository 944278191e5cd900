"""Values for the params of policies: `params.yaml` in a ConfigMap, one a line: `headroom: 4Gi`, `safe.zones: [a, b]`.

What a value must be, the param says; here it is read as YAML alone. Dates stay the text they are. The params of a
SchedulingPolicy come as JSON, and have no places.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import yaml

from policyengine.plain_yaml import PlainYamlError, documents, plain

PARAMS_FILE, PARAMS_FIELD = "params.yaml", "spec.params"
"""What messages call the values of a ConfigMap, and of a SchedulingPolicy."""
LARGEST = 1 << 20
_TAG = "tag:yaml.org,2002:"


class Given(NamedTuple):
    """A value, and where its name stands."""

    value: object
    line: int
    column: int


def params_of(name: str, text: str) -> Mapping[str, Given]:
    """The values of either form, by its name. Raises as `read_params`."""
    if name == PARAMS_FIELD:
        return {key: Given(value, 0, 0) for key, value in json.loads(text).items()}
    return read_params(text)


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
