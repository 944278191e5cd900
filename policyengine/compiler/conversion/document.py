"""Reads plain YAML or JSON data, and says where something is wrong; the profiles that a configuration asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class ConversionError(ValueError):
    """A configuration that cannot be read; one sentence that says where and what was expected."""


@dataclass(slots=True)
class WantedPlugin:
    """One in-tree plugin as a profile has it."""

    filters: bool
    """Whether it filters; for a plugin without a filter, whether it is there at all."""
    weight: int | None
    """Of its score; None where it does not score."""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class WantedProfile:
    """One profile."""

    scheduler_name: str
    plugins: dict[str, WantedPlugin]
    """By name; a plugin that is switched off is absent."""
    rules: list[str] = field(default_factory=list)
    """Members of the policy that stand for something no plugin does, as text."""
    notes: list[str] = field(default_factory=list)
    """What has no equivalent, a sentence each."""
    backoff: tuple[float, float] | None = None
    """Seconds, where they are not the default."""


class Document:
    """A mapping at a path such as `profiles[0].plugins`. Every reader raises `ConversionError` for a wrong form."""

    def __init__(self, value: object, path: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise ConversionError(f"`{path or 'the document'}` is not a mapping")
        self._value: Mapping[Any, Any] = value
        self.path = path

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether the field is there and not null or empty."""
        return self._value.get(name) not in (None, [], {}, "")

    def given(self, name: str) -> bool:
        """Whether the field is there and not null, be it empty."""
        return self._value.get(name) is not None

    def given_as(self, name: str) -> tuple[str, object]:
        """(the field, its value), whatever that is."""
        return name, self._value.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        """A string; without a default it must be there."""
        value = self._value.get(name, default)
        if not isinstance(value, str) or not value:
            raise ConversionError(f"`{self.at(name)}` is {'missing' if value is None else 'not a name'}")
        return value

    def number(self, name: str, default: float) -> float:
        """A number that is not negative."""
        value = self._value.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConversionError(f"`{self.at(name)}` is not a number of at least 0")
        return float(value)

    def whole(self, name: str) -> int | None:
        """An int, None where it is absent."""
        value = self._value.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ConversionError(f"`{self.at(name)}` is not an int")
        return value

    def flag(self, name: str) -> bool:
        """A bool, false where it is absent."""
        value = self._value.get(name, False)
        if not isinstance(value, bool):
            raise ConversionError(f"`{self.at(name)}` is neither true nor false")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of strings; empty where it is absent."""
        value = self._value.get(name) or []
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise ConversionError(f"`{self.at(name)}` is not a list of names")
        return value

    def plain_list(self, name: str) -> list[dict[str, Any]]:
        """A list of mappings as plain data, without their nulls."""
        return [
            {str(key): value for key, value in one._value.items() if value is not None} for one in self.listed(name)
        ]

    def inner(self, name: str) -> Document:
        """A mapping; empty where it is absent."""
        return Document(self._value.get(name), self.at(name))

    def plain(self, name: str) -> dict[str, Any]:
        """A mapping as plain data, without its nulls."""
        return {str(key): value for key, value in self.inner(name)._value.items() if value is not None}

    def listed(self, name: str) -> list[Document]:
        """A list of mappings; empty where it is absent."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ConversionError(f"`{self.at(name)}` is not a list")
        return [Document(one, f"{self.at(name)}[{number}]") for number, one in enumerate(value)]

    def names(self, name: str) -> set[str]:
        """The names in a list of `{name: …}`."""
        return {one.text("name") for one in self.listed(name)}

    def weights(self, name: str) -> dict[str, int | None]:
        """{name: weight} of a list of `{name: …, weight: …}`, each name once."""
        found: dict[str, int | None] = {}
        for one in self.listed(name):
            plugin = one.text("name")
            if plugin in found:
                raise ConversionError(f"`{one.path}`: `{plugin}` is enabled twice")
            found[plugin] = one.whole("weight")
        return found
