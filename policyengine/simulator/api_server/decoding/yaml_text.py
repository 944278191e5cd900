"""YAML of a body, without aliases and dates, and the keys it gives twice; faults are worded as Go's reader does."""

from typing import cast

import yaml

from policyengine.simulator.api_server.statuses import Json


class _NoAliases(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML without aliases, which could make a small text a huge object, and without dates."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        return cast("yaml.Node | None", super().compose_node(parent, index))


_NoAliases.yaml_implicit_resolvers = {
    mark: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for mark, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def duplicates(body: bytes) -> list[str]:
    """The paths of keys that are there twice in YAML that can be read."""
    loader = _NoAliases(body)
    try:
        root = loader.get_single_node()
    finally:
        loader.dispose()
    return _duplicates(root, "")


def _duplicates(node: yaml.Node | None, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                found.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
            seen.add(key.value)
            found += _duplicates(value, path)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            found += _duplicates(item, path)
    return found


def load(body: bytes) -> Json:
    """YAML of a body; raises ValueError with a Go-like message."""
    try:
        return cast(Json, yaml.load(body, Loader=_NoAliases))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"yaml: line {line}: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"yaml: {str(error).splitlines()[0]}") from error
