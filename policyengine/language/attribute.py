"""What the schema is made of: things with fields, and what is known of each field."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from policyengine.language.types import Reach, Shape, Type


class Attribute(Struct, frozen=True, kw_only=True):
    """A field of an object, or a root.

    changes: what may alter it, as `<thing>.add`, `<thing>.delete` or `<thing>.<field>`; the compiler maps them to
    cluster events. evictable: whether evicting a pod may alter it. optional: it may be absent, so it is read as
    `.?name` or behind `has`. of_pods: it is read of each pod of a list.
    """

    name: str
    type: Type
    doc: str
    optional: bool = False
    reach: Reach = Reach.CONSTANT
    evictable: bool = False
    changes: tuple[str, ...] = ()
    of_pods: bool = False

    @property
    def shape(self) -> Shape:
        """POD for what there is one of a pod of the cluster, NODE for what there is one of a node, else SCALAR."""
        if self.of_pods:
            return Shape.POD
        return Shape.NODE if self.reach in (Reach.NODE_FIXED, Reach.NODE_CHANGING) else Shape.SCALAR


class ObjectInfo(Struct, frozen=True):
    """A thing with fields. `entries`: the type of `thing[?"vendor/x"]`, None where it takes no key. `methods`: what
    takes an argument (`node.domain(key)`), with the type of its result."""

    name: str
    doc: str
    fields: Mapping[str, Attribute]
    entries: Type | None = None
    methods: Mapping[str, Attribute] = field(default_factory=dict)


def field_of(name: str, type_: Type, doc: str, *, optional: bool = False) -> Attribute:
    """A field of an object that stands for itself: what it changes with is said where the object is used."""
    return Attribute(name=name, type=type_, doc=doc, optional=optional)


def object_info_of(name: str, doc: str, *fields: Attribute, entries: Type | None = None) -> ObjectInfo:
    """An object of the schema, its fields in the order they are shown."""
    return ObjectInfo(name, doc, {field.name: field for field in fields}, entries)
