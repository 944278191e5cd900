"""Reading Kubernetes' protobuf bodies, which kubectl and client-go send for built-in kinds.

A body is the magic `k8s\\0` and a runtime.Unknown: the type, then the object's own message. Messages are read by the
schema's field numbers into the same JSON values a JSON body would give; what is unknown is passed over.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from policyengine.simulator.api_server.kinds.schema import Field, Struct, Type, load, struct
from policyengine.simulator.api_server.statuses import Json

MAGIC = b"k8s\0"
CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
MAX_DEPTH = 64
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Part = tuple[int, int, int | bytes]


NO_MAGIC = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"


class ProtobufError(ValueError):
    """The body is no message; the text is the real server's."""


def broken(why: str = "unexpected EOF") -> ProtobufError:
    """The message ends early, or is none."""
    return ProtobufError(why)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise broken()
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def parts(raw: bytes) -> Iterator[Part]:
    """`(field number, wire type, value)` of a message; raises ProtobufError."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = _varint(raw, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            length, at = _varint(raw, at)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise broken()
        if at + length > len(raw):
            raise broken()
        yield number, wire, raw[at : at + length]
        at += length


def _fields(raw: bytes) -> dict[int, int | bytes]:
    """The last value of each field of a small message."""
    return {number: value for number, _, value in parts(raw)}


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(raw: int | bytes) -> str:
    if not isinstance(raw, bytes):
        raise broken()
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise broken() from error


def _number(value: int | bytes | None) -> int:
    return _signed(value) if isinstance(value, int) else 0


def _time(raw: bytes, micro: bool) -> Json:
    held = _fields(raw)
    seconds, nanos = _number(held.get(1)), _number(held.get(2))
    if not raw:
        return None
    try:
        stamp = EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        raise broken() from error
    # Go's zero time is the year one; it stands for none.
    if stamp.year <= 1:
        return None
    return stamp.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _int_or_string(raw: bytes) -> Json:
    held = _fields(raw)
    return _text(held.get(3, b"")) if _number(held.get(1)) == 1 else _number(held.get(2))


def _raw(raw: bytes) -> Json:
    inner = _fields(raw).get(1, b"")
    try:
        value: Json = msgspec.json.decode(inner) if isinstance(inner, bytes) and inner else None
    except msgspec.DecodeError as error:
        raise broken() from error
    return value


def _scalar(kind: str, value: int | bytes) -> Json:
    if isinstance(value, int):
        return bool(value) if kind == "bool" else _signed(value)
    match kind:
        case "string":
            return _text(value)
        case "bytes":
            return base64.b64encode(value).decode()
        case "quantity":
            return _text(_fields(value).get(1, b""))
        case "time" | "microtime":
            return _time(value, kind == "microtime")
        case "intstr":
            return _int_or_string(value)
        case "duration":
            return f"{_number(_fields(value).get(1)) // 1_000_000_000}s"
        case "raw":
            return _raw(value)
        case _:
            raise broken()


def _value(type_: Type, value: int | bytes, depth: int) -> Json:
    if type_.kind == "struct":
        if not isinstance(value, bytes):
            raise broken()
        return message(value, struct(type_.ref), depth + 1)
    if type_.kind == "list" and type_.elem and isinstance(value, bytes):
        # A list inside a map or list is a message of its own, with the items in field 1.
        return [_value(type_.elem, item, depth + 1) for number, _, item in parts(value) if number == 1]
    return _scalar(type_.kind, value)


def message(raw: bytes, type_: Struct, depth: int = 0, inside: tuple[int, ...] = ()) -> dict[str, Json]:
    """A message of a struct as JSON; `inside` is the path of an inlined message. Raises a 400."""
    if depth > MAX_DEPTH:
        raise broken()
    known = {f.number: f for f in type_.fields.values()}
    out: dict[str, Json] = {}
    for number, _, value in parts(raw):
        path = (*inside, number)
        field = known.get(path)
        if field is not None:
            _put(out, field, value, depth)
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
        held = _fields(value)
        empty = b"" if type_.elem.kind not in ("bool", "int32", "int64") else 0
        entries[_text(held.get(1, b""))] = _value(type_.elem, held.get(2, empty), depth)
    else:
        out[field.name] = _value(type_, value, depth)


def _struct_of(api_version: str, kind: str) -> Struct | None:
    home = api_version if "/" in api_version else f"core/{api_version}"
    return load(home).get(kind) or load("meta").get(kind)


def read(body: bytes) -> dict[str, Json]:
    """A body as a JSON object with its `kind` and `apiVersion`; raises ProtobufError."""
    if not body.startswith(MAGIC):
        raise broken(NO_MAGIC)
    envelope = _fields(body[len(MAGIC) :])
    type_meta, raw = envelope.get(1, b""), envelope.get(2, b"")
    if not isinstance(type_meta, bytes) or not isinstance(raw, bytes):
        raise broken()
    named = _fields(type_meta)
    api_version, kind = _text(named.get(1, b"")), _text(named.get(2, b""))
    found = _struct_of(api_version, kind)
    if found is None:
        raise broken(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"kind": kind, "apiVersion": api_version, **message(raw, found)}
