"""Decoding an object into its type and back: what Go's decoder and encoder do to a body between client and storage.

A field the type does not know is dropped and reported; a value of the wrong JSON type is refused; an empty value of
an omit-empty field disappears; a field that is always written appears with its zero value. The result is the object
as the real server would send it back, without `kind` and `apiVersion`.
"""

import base64
import binascii
from collections.abc import Callable

from policyengine.simulator.api_server import scalars
from policyengine.simulator.api_server.kinds.api_types import Field, Struct, Type, struct
from policyengine.simulator.api_server.statuses import Json

GO_NAMES = {"float": "float64", "raw": "interface {}", "bytes": "[]uint8", "time": "v1.Time", "intstr": "int32"}
ZEROS: dict[str, Json] = {"bool": False, "string": "", "quantity": "0", "duration": "0s"}
INT_BOUNDS = {"int32": 2**31, "int64": 2**63}


class DecodeError(ValueError):
    """A value of the wrong JSON type; the message follows encoding/json's wording."""


def json_kind(value: object) -> str:
    """What encoding/json calls a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    return "array" if isinstance(value, list) else "object"


def go_name(type_: Type) -> str:
    """The Go type's name in an error text."""
    if type_.kind == "struct":
        return f"v1.{type_.ref.rpartition(':')[2]}"
    if type_.kind == "list" and type_.elem:
        return f"[]{go_name(type_.elem)}"
    if type_.kind == "map" and type_.elem:
        return f"map[string]{go_name(type_.elem)}"
    return GO_NAMES.get(type_.kind, type_.kind)


def zero(type_: Type) -> Json:
    """The value Go writes for a field that was never set."""
    if type_.pointer or type_.kind in ("list", "map", "raw", "bytes", "time", "microtime"):
        return None
    if type_.kind == "struct":
        return Decoder().struct({}, struct(type_.ref), "")
    return ZEROS.get(type_.kind, 0)


class Decoder:
    """One decoding; `unknown` collects the paths of fields that were dropped."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def struct(self, value: Json, type_: Struct, path: str) -> dict[str, Json]:
        """`value` as `type_`; raises DecodeError."""
        if not isinstance(value, dict):
            raise DecodeError(f"json: cannot unmarshal {json_kind(value)} into Go value of type v1.{type_.name}")
        out: dict[str, Json] = {}
        fields = type_.fields
        for name, given in value.items():
            known = fields.get(name)
            if known is None:
                self.unknown.append(f"{path}{name}")
            elif given is not None:
                self._field(out, given, known, type_, path)
        for known in type_.always:
            if known.name not in out:
                out[known.name] = zero(known.type)
        return out

    def _field(self, out: dict[str, Json], given: Json, known: Field, owner: Struct, path: str) -> None:
        kept = self.value(given, known.type, f"{path}{known.name}", owner)
        if known.omit and not known.type.pointer and not kept and known.type.kind != "raw":
            return
        out[known.name] = kept

    def value(self, given: Json, type_: Type, path: str, owner: Struct) -> Json:
        """`given` as `type_`; raises DecodeError naming the field."""
        kind = type_.kind
        if kind == "string" and isinstance(given, str):
            return given
        if kind == "struct" and isinstance(given, dict):
            return self.struct(given, struct(type_.ref), path + ".")
        if kind == "list" and isinstance(given, list) and type_.elem:
            elem = type_.elem
            return [self._element(item, elem, f"{path}[{i}]", owner) for i, item in enumerate(given)]
        if kind == "map" and isinstance(given, dict) and type_.elem:
            elem = type_.elem
            # A map's values are told by the map's own path, a struct's fields in them by key.
            below = f"{path}." if elem.kind == "struct" else ""
            return {
                key: self._element(item, elem, f"{below}{key}" if below else path, owner) for key, item in given.items()
            }
        if kind == "bool" and isinstance(given, bool):
            return given
        if kind in INT_BOUNDS and not isinstance(given, bool) and isinstance(given, int | float):
            return self._integer(given, kind, path, owner)
        if kind == "raw":
            return given
        read = _READERS.get(kind)
        kept = read(given) if read else None
        if kept is None:
            self._refuse(json_kind(given), type_, path, owner)
        return kept

    def _element(self, item: Json, elem: Type, path: str, owner: Struct) -> Json:
        return zero(elem) if item is None else self.value(item, elem, path, owner)

    def _integer(self, given: int | float, kind: str, path: str, owner: Struct) -> int:
        bound = INT_BOUNDS[kind]
        if given != int(given) or not -bound <= given < bound:
            self._refuse(f"number {given}", Type(kind), path, owner)
        return int(given)

    def _refuse(self, found: str, type_: Type, path: str, owner: Struct) -> None:
        bare = "".join(part.partition("]")[2] if i else part for i, part in enumerate(path.split("[")))
        raise DecodeError(
            f"json: cannot unmarshal {found} into Go struct field {owner.name}.{bare} of type {go_name(type_)}"
        )


def _scalar(canonical: Callable[[str], str], *kinds: str) -> Callable[[Json], Json]:
    """Reads values of some JSON kinds by their text."""

    def read(given: Json) -> Json:
        if json_kind(given) not in kinds:
            return None
        if given == "":
            return None if canonical is scalars.canonical_quantity else ""
        try:
            return canonical(str(given))
        except scalars.ScalarError as error:
            raise DecodeError(str(error)) from error

    return read


def _bytes(given: Json) -> Json:
    if not isinstance(given, str):
        return None
    try:
        base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DecodeError("illegal base64 data at input byte 0") from error
    return given


_READERS: dict[str, Callable[[Json], Json]] = {
    "quantity": _scalar(scalars.canonical_quantity, "string", "number"),
    "time": _scalar(scalars.canonical_time, "string"),
    "microtime": _scalar(scalars.canonical_micro_time, "string"),
    "duration": lambda given: given if isinstance(given, str) else None,
    "bytes": _bytes,
    "intstr": lambda given: None if isinstance(given, bool) or not isinstance(given, int | str) else given,
    "float": lambda given: given if json_kind(given) == "number" else None,
}
