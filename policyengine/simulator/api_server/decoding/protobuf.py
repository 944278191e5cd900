"""Reading Kubernetes' protobuf bodies, which kubectl and client-go send for built-in kinds.

A body is the magic `k8s\\0` and a runtime.Unknown: the type, then the object's own message. Messages are read by the
schema's field numbers into the same JSON values a JSON body would give; what is unknown is passed over.
"""

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from policyengine.simulator.api_server.kinds.api_types import Field, Struct, Type, load, struct
from policyengine.simulator.api_server.statuses import Json

MAGIC = b"k8s\0"
CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
MAX_DEPTH = 64
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_MAGIC = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"


class ProtobufError(ValueError):
    """The body is no message; the text is the real server's."""

    def __init__(self, why: str = "unexpected EOF") -> None:
        super().__init__(why)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw) and shift <= 63:
        value |= (raw[at] & 0x7F) << shift
        if raw[at] < 0x80:
            return value, at + 1
        at += 1
        shift += 7
    raise ProtobufError


def parts(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """`(field number, value)` of a message; raises ProtobufError."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        number, wire = key >> 3, key & 7
        if wire not in (VARINT, BYTES, FIXED64, FIXED32):
            raise ProtobufError
        if wire == VARINT:
            value, at = _varint(raw, at)
            yield number, value - (1 << 64) if value >= 1 << 63 else value
            continue
        length = {FIXED64: 8, FIXED32: 4}.get(wire, 0)
        if wire == BYTES:
            length, at = _varint(raw, at)
        if at + length > len(raw):
            raise ProtobufError
        yield number, raw[at : at + length]
        at += length


def _field(raw: bytes, number: int) -> bytes:
    """The last value of a field of bytes, empty for none."""
    found = dict(parts(raw)).get(number, b"")
    return found if isinstance(found, bytes) else b""


def _number(raw: bytes, number: int) -> int:
    found = dict(parts(raw)).get(number, 0)
    return found if isinstance(found, int) else 0


def _time(layout: str) -> Callable[[bytes], Json]:
    def read(raw: bytes) -> Json:
        stamp = EPOCH + timedelta(seconds=_number(raw, 1), microseconds=_number(raw, 2) // 1000)
        # Go's zero time is the year one; it stands for none.
        return stamp.strftime(layout) if raw and stamp.year > 1 else None

    return read


_SCALARS: dict[str, Callable[[bytes], Json]] = {
    "string": bytes.decode,
    "bytes": lambda raw: base64.b64encode(raw).decode(),
    "quantity": lambda raw: _field(raw, 1).decode(),
    "time": _time("%Y-%m-%dT%H:%M:%SZ"),
    "microtime": _time("%Y-%m-%dT%H:%M:%S.%fZ"),
    "intstr": lambda raw: _field(raw, 3).decode() if _number(raw, 1) == 1 else _number(raw, 2),
    "duration": lambda raw: f"{_number(raw, 1) // 1_000_000_000}s",
    "raw": lambda raw: msgspec.json.decode(_field(raw, 1) or b"null"),
}


def _value(type_: Type, value: int | bytes, depth: int) -> Json:
    if isinstance(value, int):
        if type_.kind not in ("bool", "int32", "int64"):
            raise ProtobufError
        return bool(value) if type_.kind == "bool" else value
    if type_.kind == "struct":
        return message(value, struct(type_.ref), depth + 1)
    if type_.kind == "list" and type_.elem:
        # A list inside a map or list is a message of its own, with the items in field 1.
        return [_value(type_.elem, item, depth + 1) for number, item in parts(value) if number == 1]
    if type_.kind not in _SCALARS:
        raise ProtobufError
    return _SCALARS[type_.kind](value)


def message(raw: bytes, type_: Struct, depth: int = 0, inside: tuple[int, ...] = ()) -> dict[str, Json]:
    """A message of a struct as JSON; `inside` is the path of an inlined message. Raises ProtobufError."""
    if depth > MAX_DEPTH:
        raise ProtobufError
    known = {f.number: f for f in type_.fields.values()}
    out: dict[str, Json] = {}
    for number, value in parts(raw):
        path = (*inside, number)
        if path in known:
            _put(out, known[path], value, depth)
        elif isinstance(value, bytes) and any(other[: len(path)] == path for other in known):
            out.update(message(value, type_, depth + 1, path))
    return out


def _put(out: dict[str, Json], field: Field, value: int | bytes, depth: int) -> None:
    type_ = field.type
    if type_.kind == "list" and type_.elem:
        rows = out.setdefault(field.name, [])
        assert isinstance(rows, list)
        rows.append(_value(type_.elem, value, depth))
    elif type_.kind == "map" and type_.elem and isinstance(value, bytes):
        entries = out.setdefault(field.name, {})
        assert isinstance(entries, dict)
        empty = b"" if type_.elem.kind not in ("bool", "int32", "int64") else 0
        entries[_field(value, 1).decode()] = _value(type_.elem, dict(parts(value)).get(2, empty), depth)
    else:
        out[field.name] = _value(type_, value, depth)


def read(body: bytes) -> dict[str, Json]:
    """A body as a JSON object with its `kind` and `apiVersion`; raises ProtobufError."""
    try:
        return _read(body)
    except (UnicodeDecodeError, OverflowError, msgspec.DecodeError) as error:
        raise ProtobufError from error


def _read(body: bytes) -> dict[str, Json]:
    if not body.startswith(MAGIC):
        raise ProtobufError(NO_MAGIC)
    envelope = body[len(MAGIC) :]
    named = _field(envelope, 1)
    api_version, kind = _field(named, 1).decode(), _field(named, 2).decode()
    home = api_version if "/" in api_version else f"core/{api_version}"
    found = load(home).get(kind) or load("meta").get(kind)
    if found is None:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"kind": kind, "apiVersion": api_version, **message(_field(envelope, 2), found)}
