"""Values for the params of policies: `params.yaml` in a ConfigMap, one a line: `headroom: 4Gi`, `safe.zones: [a, b]`.

What a value must be, the param says; here it is read as YAML alone. Dates stay the text they are. The params of a
SchedulingPolicy are JSON, which is YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import yaml

from policyengine.plain_yaml import PlainYamlError, documents, plain

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
