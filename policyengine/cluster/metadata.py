"""What every object carries: names, versions, labels, owners; and the settings of all decoded structs."""

from __future__ import annotations

import msgspec

Quantities = dict[str, str | int | float]
"""A resource list as written: quantities are parsed where they are used, so that a malformed one spoils no more
than its own object."""


class Wire(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename="camel",
):
    """The base of everything decoded: immutable, camelCase on the wire, unknown fields ignored."""


class LabelSelectorRequirement(Wire, frozen=True):
    """`key operator values`: In, NotIn, Exists, DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True):
    """All of it must hold; an empty selector matches everything."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class OwnerReference(Wire, frozen=True):
    """An owner; the one with `controller` true manages the object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Wire, frozen=True):
    """metav1.ObjectMeta. Times are RFC 3339 text, see `parse_time`."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object."""
        return next((owner for owner in self.owner_references if owner.controller), None)
