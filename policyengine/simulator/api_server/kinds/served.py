"""The resources served: in which groups and versions, with which verbs and subresources, and how each is written.

They are read from `schemas/resources.txt`; CustomResourceDefinitions add theirs at run time. One stored collection may
be served in two groups: an Event is stored once and served as `v1` and as `events.k8s.io/v1`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from policyengine.simulator.api_server.kinds.api_types import FOLDER, Struct, load
from policyengine.simulator.api_server.statuses import Json

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource: the kind it takes and gives, and its verbs."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(slots=True, eq=False)
class Kind:
    """One resource in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, Subresource] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    """The paths it can be selected by, besides its name and namespace."""
    traits: set[str] = field(default_factory=set)
    """How it is written; `schemas/resources.txt` says what each means."""
    custom: "Mapping[str, Json] | None" = None
    """The version's entry of a CustomResourceDefinition; None for a built-in kind."""

    @property
    def api_version(self) -> str:
        """`v1`, or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def schema_home(self) -> str:
        """The schema file's name for this version: the core group is called `core` there."""
        return f"{self.group or 'core'}/{self.version}"

    @property
    def storage_key(self) -> tuple[str, str]:
        """The collection this version shows; Events are stored once and served by two groups."""
        return ("" if self.group == "events.k8s.io" else self.group, self.plural)

    @property
    def has_status(self) -> bool:
        """Whether status is written through a subresource only."""
        return "status" in self.subresources

    @property
    def struct(self) -> Struct | None:
        """The type of a built-in kind."""
        return load(self.schema_home).get(self.kind)

    @property
    def custom_schema(self) -> dict[str, Json]:
        """The OpenAPI v3 schema of a custom kind; empty for none."""
        schema = (self.custom or {}).get("schema")
        found = schema.get("openAPIV3Schema") if isinstance(schema, dict) else None
        return found if isinstance(found, dict) else {}

    def type_meta(self) -> dict[str, Json]:
        """`kind` and `apiVersion`, as they stand in an object."""
        return {"kind": self.kind, "apiVersion": self.api_version}


ATTRIBUTES = {"short": "short_names"} | {name: name for name in ("singular", "verbs", "categories", "fields")}
"""By its key in `schemas/resources.txt`, the attribute of a Kind."""


def _parse(line: str, group: str, version: str) -> Kind:
    plural, kind, scope, *words = line.split()
    found = Kind(group, version, plural, kind, scope == "namespaced", kind.lower())
    for word in words:
        if word == "status":
            found.subresources["status"] = Subresource("status", kind, STATUS_VERBS)
        elif word.startswith("/"):
            name, _, rest = word[1:].partition("=")
            target, _, verbs = rest.rpartition(":")
            gv, _, sub_kind = target.rpartition(":")
            sub_group, _, sub_version = gv.partition("/")
            found.subresources[name] = Subresource(name, sub_kind, tuple(verbs.split(",")), sub_group, sub_version)
        elif "=" not in word:
            found.traits.add(word)
        else:
            key, _, value = word.partition("=")
            setattr(found, ATTRIBUTES[key], value if key == "singular" else tuple(value.split(",")))
    return found


@cache
def _built_in() -> tuple[Kind, ...]:
    kinds: list[Kind] = []
    group = version = ""
    for line in (FOLDER / "resources.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if line.startswith(" "):
            kinds.append(_parse(line, group, version))
        else:
            group, _, version = line.strip().partition("/")
            group = "" if group == "core" else group
    return tuple(kinds)


class Kinds:
    """All kinds of one server, in the order discovery lists them."""

    def __init__(self) -> None:
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        for kind in _built_in():
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve one more (or replace it)."""
        self._by_path[kind.group, kind.version, kind.plural] = kind

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource in every version."""
        for key in [k for k in self._by_path if k[0] == group and k[2] == plural]:
            del self._by_path[key]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind at a path."""
        return self._by_path.get((group, version, plural))

    def built_in(self, group: str, version: str, plural: str) -> Kind:
        """A kind that is always served."""
        return self._by_path[group, version, plural]

    def has_group_version(self, group: str, version: str) -> bool:
        """Whether anything is served there."""
        return any(k[0] == group and k[1] == version for k in self._by_path)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_path.values())
