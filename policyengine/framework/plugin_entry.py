"""What is known of a plugin before it is built: its name, its arguments' schema, its default weight.

The checker and the compiler are handed a mapping of these; they know no plugin by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Arguments = Mapping[str, Any]
_MEETS_NONE = frozenset({"$schema", "$defs", "title", "description", "properties", "additionalProperties"})
"""Keywords of a schema, beside `type`, that an object without properties meets whatever they say."""
NO_ARGUMENTS: Final[Mapping[str, object]] = {"type": "object", "additionalProperties": False}


def schema_of(*required: str, **properties: object) -> Mapping[str, object]:
    """JSON schema of an object that may have these properties and no others."""
    needed = {"required": [*required]} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


class ArgumentError(ValueError):
    """The arguments of a `use` do not fit the plugin; the message names the plugin and the argument."""


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin that can be built."""

    name: str
    factory: Callable[[Arguments], Any]
    arguments: Mapping[str, object] = field(default_factory=lambda: NO_ARGUMENTS)
    """JSON schema of its arguments, named as in KubeSchedulerConfiguration."""
    default_weight: int | None = None
    """The weight of its score in the default profile; None for one that does not score."""
    filters: bool = False
    order: int = 0
    in_base: bool = True
    """Whether it is in a policy's base; else only where the policy says `use`."""

    @property
    def scores(self) -> bool:
        """Whether it scores."""
        return self.default_weight is not None

    def build(self, arguments: Arguments | None = None) -> Any:
        """The plugin with these arguments; `ArgumentError` for arguments that do not fit."""
        given = dict(arguments or {})
        needs = {key: value for key, value in self.arguments.items() if key not in _MEETS_NONE}
        if given or needs != {"type": "object"}:
            self._check(given)
        try:
            return self.factory(given)
        except ValueError as error:
            raise ArgumentError(f"`{self.name}`: {error}") from error

    def _check(self, given: Mapping[str, object]) -> None:
        from jsonschema import Draft202012Validator  # a tenth of a scheduler's start, whose plugins mostly have none
        from jsonschema.exceptions import best_match

        wrong = best_match(Draft202012Validator(dict(self.arguments)).iter_errors(given))
        if wrong is not None:
            where = ".".join(str(part) for part in wrong.absolute_path)
            raise ArgumentError(f"`{self.name}`: {f'`{where}`: ' if where else ''}{wrong.message}")
