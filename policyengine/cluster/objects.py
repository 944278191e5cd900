"""What all Kubernetes objects share: metadata, label selectors, and how JSON is decoded into structs.

Rules: only fields that are read are decoded; unknown fields are ignored; a JSON null is an absent field, as Go
takes it; a field of the wrong type is an `ObjectError` that names the object and the field. Quantities stay
text: a malformed one must not make its object disappear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec

from policyengine.control_characters import escaped

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""No number of the API is larger; Python's, and JSON's, may be."""
Quantities = dict[str, str | Int64 | float]
"""A resource list as written: quantities are parsed where they are used, so that a malformed one spoils no more
than its own object."""


class Wire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The base of everything decoded: immutable, camelCase on the wire, unknown fields ignored."""


class SelectorRequirement(Wire, frozen=True):
    """`key operator values`: In, NotIn, Exists, DoesNotExist; for nodes Gt and Lt too."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True):
    """All of it must hold; an empty selector matches everything."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[SelectorRequirement, ...] = ()


class Resources(Wire, frozen=True):
    """The `resources` of a container, a pod or a claim of storage."""

    requests: Quantities = msgspec.field(default_factory=dict)
    limits: Quantities = msgspec.field(default_factory=dict)


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
    generation: Int64 = 0
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


T = TypeVar("T", bound=Wire)

_decoders: dict[type[Wire], msgspec.json.Decoder[Any]] = {}


class ObjectError(ValueError):
    """An object cannot be read; the message names it, the field, and what to do."""


def make_decoders(kinds: Iterable[type[Wire]]) -> None:
    """Make the decoders of these structs, and msgspec's type information for every struct inside them.

    Called while modules are imported: two threads that make type information for one struct end the process.
    """
    _decoders.update((kind, msgspec.json.Decoder(kind)) for kind in kinds)


def decode(kind: type[T], raw: bytes | Mapping[str, object]) -> T:
    """Decode JSON text, or JSON already parsed, into `kind`; raises `ObjectError`."""
    try:
        if not isinstance(raw, bytes | bytearray | memoryview):
            return msgspec.convert(raw, kind)
        if kind not in _decoders:  # a struct that only one thread decodes
            make_decoders([kind])
        result: T = _decoders[kind].decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _decode_again(kind, raw, error)
    return result


def _decode_again(kind: type[T], raw: bytes | Mapping[str, object], first: Exception) -> T:
    """The slow way, taken only after a failure: nulls away, and a message worth reading."""
    plain: object = raw
    try:
        if isinstance(raw, bytes | bytearray | memoryview):
            plain = msgspec.json.decode(raw)
        return msgspec.convert(_without_nulls(plain), kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise ObjectError(_complaint(kind, plain, str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ObjectError(f"a {kind.__name__} is not valid JSON ({first}); read it again") from None
    except RecursionError:
        raise ObjectError(f"a {kind.__name__} is nested too deeply; it was left out") from None


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _complaint(kind: type[Wire], plain: object, problem: str) -> str:
    metadata = plain.get("metadata") if isinstance(plain, Mapping) else None
    name = ""
    if isinstance(metadata, Mapping):
        name = "/".join(escaped(str(metadata[part])) for part in ("namespace", "name") if metadata.get(part))
    what, _, where = problem.partition(" - at `")
    field = where.rstrip("`").removeprefix("$.").removeprefix("$")
    subject = f"{kind.__name__} `{name}`" if name else f"a {kind.__name__} without a name"
    place = f"field `{field}`: " if field else ""
    return f"{subject}: {place}{what[:1].lower()}{what[1:]}; correct the object"


def parse_time(text: str | None) -> float | None:
    """RFC 3339, as metav1.Time and MicroTime write it -> seconds since the epoch; None where there is no time."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ObjectError(f"`{text}` is not a time; write it as 2026-01-05T18:30:00Z") from None


def format_time(seconds: float) -> str:
    """Seconds since the epoch as metav1.Time: RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_moment(seconds: float) -> str:
    """The same to the millisecond, for people and for what they read in order."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
