"""The OpenAPI v2 document, as JSON and as protobuf: `kubectl apply` checks a `v1 List` against it, and so does
`kubectl explain --output=plaintext-openapiv2`.

It is the schemas of the v3 documents of all kinds in one, in the older form, without operations. The protobuf is
gnostic's openapi.v2.Document; numbers are its field numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

from policyengine.simulator.api_server.kinds.openapi import document
from policyengine.simulator.api_server.kinds.served import Kinds
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.store import encode

GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ASKED = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", PROTOBUF)
Object = dict[str, Json]


def document_v2(kinds: Kinds) -> Object:
    """The whole document."""
    definitions: Object = {}
    for group, version in sorted({(kind.group, kind.version) for kind in kinds}):
        found = document(kinds, group, version) or {}
        for name, schema in _items(found, "components", "schemas"):
            # A kind of one group may be a field's type in another, where nothing says that it is a kind.
            if name not in definitions or GROUP_VERSION_KIND in schema:
                definitions[name] = _schema(schema)
    info: Json = {"title": "Kubernetes", "version": "v1.36.2"}
    return {"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions}


def _items(found: Mapping[str, Json], *names: str) -> Iterator[tuple[str, Object]]:
    at: Json = dict(found)
    for name in names:
        at = at.get(name, {}) if isinstance(at, dict) else {}
    for key, value in at.items() if isinstance(at, dict) else ():
        if isinstance(value, dict):
            yield key, value


def _schema(schema: Object) -> Object:
    """One schema in the older form: a reference stands bare, and what v2 does not know is left out."""
    out: Object = {}
    for name, value in schema.items():
        if name in ("description", "type", "format", "required") or name.startswith("x-"):
            out[name] = value
        elif name == "$ref":
            out["$ref"] = f"#/definitions/{str(value).rpartition('/')[2]}"
        elif name == "allOf" and isinstance(value, list) and len(value) == 1:
            out |= _schema(cast(Object, value[0]))
        elif name in ("items", "additionalProperties") and isinstance(value, dict):
            out[name] = _schema(value)
        elif name == "properties" and isinstance(value, dict):
            out[name] = {key: _schema(cast(Object, below)) for key, below in value.items()}
    return out


def protobuf(found: Object) -> bytes:
    """The document as gnostic's messages."""
    info = cast(dict[str, str], found["info"])
    definitions = _named(_items(found, "definitions"))
    head = _text(1, str(found["swagger"])) + _part(2, _text(1, info["title"]) + _text(2, info["version"]))
    return head + _part(8, b"") + _part(9, definitions)


def _named(schemas: Iterable[tuple[str, Object]]) -> bytes:
    return b"".join(_part(1, _text(1, name) + _part(2, _schema_message(schema))) for name, schema in schemas)


def _required(value: Json) -> bytes:
    return b"".join(_text(19, str(name)) for name in value) if isinstance(value, list) else b""


_FIELDS: dict[str, Callable[[Json], bytes]] = {
    "$ref": lambda value: _text(1, str(value)),
    "format": lambda value: _text(2, str(value)),
    "description": lambda value: _text(4, str(value)),
    "required": _required,
    "additionalProperties": lambda value: _part(21, _part(1, _schema_message(cast(Object, value)))),
    "type": lambda value: _part(22, _text(1, str(value))),
    "items": lambda value: _part(23, _part(1, _schema_message(cast(Object, value)))),
    "properties": lambda value: _part(25, _named(_items(cast(Object, value)))),
}


def _schema_message(schema: Object) -> bytes:
    known = b"".join(_FIELDS[name](value) for name, value in schema.items() if name in _FIELDS)
    return known + _extensions(31, schema)


def _extensions(number: int, holder: Object) -> bytes:
    """Extensions as YAML, of which JSON is a part."""
    return b"".join(
        _part(number, _text(1, name) + _part(2, _part(2, encode(value))))
        for name, value in holder.items()
        if name.startswith("x-")
    )


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _part(number: int, content: bytes) -> bytes:
    """A field of bytes: a message or a text."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, content: str) -> bytes:
    return _part(number, content.encode())
