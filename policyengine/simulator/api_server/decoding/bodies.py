"""Reading request bodies: JSON or YAML into an object of the kind asked for, with the real server's refusals.

`fieldValidation` says what happens to fields the kind does not know: Ignore drops them, Warn (the default) drops
them and warns, Strict refuses the request (https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec

from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.decoding import protobuf
from policyengine.simulator.api_server.decoding.codec import DecodeError, Decoder, json_kind
from policyengine.simulator.api_server.decoding.custom_resources import CustomDecoder
from policyengine.simulator.api_server.decoding.json_and_yaml import duplicates, fault, load_yaml, utf8, yaml_duplicates
from policyengine.simulator.api_server.field_errors import too_long, unsupported
from policyengine.simulator.api_server.http_requests import Request
from policyengine.simulator.api_server.kinds.api_types import load, struct
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import ApiError, Cause, Json, bad_request
from policyengine.simulator.api_server.storage import Object

JSON_TYPES = ("", "application/json")
APPLY_PATCH = "application/apply-patch+yaml"
YAML_TYPES = ("application/yaml", "application/x-yaml")
QUOTED = 30
MAX_MANAGER = 128
NO_TYPE = "couldn't get version/kind; "
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


@dataclass(slots=True)
class WriteOptions:
    """What a write's query asks for besides the write."""

    dry_run: bool = False
    field_manager: str = ""
    validation: str = "Warn"
    force: bool = False
    warnings: list[str] = field(default_factory=list)


def write_options(query: Mapping[str, str], what: str, applies: bool = False) -> WriteOptions:
    """The options of a write (`applies`: of a server-side apply), called `what` in the 422 of those that are none."""
    dry_run, validation = query.get("dryRun", ""), query.get("fieldValidation", "")
    causes: list[Cause] = []
    if dry_run not in ("", "All"):
        causes.append(unsupported("dryRun", [dry_run], ("All",)))
    if validation not in ("", "Ignore", "Warn", "Strict"):
        causes.append(unsupported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    causes += _manager_faults(query.get("fieldManager", ""))
    forced = query.get("force", "").lower()
    if what == "PatchOptions" and not applies and forced:
        causes.append(Cause("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch"))
    if causes:
        raise statuses.invalid(what, "meta.k8s.io", "", causes)
    force = bool(forced) and forced not in ("0", "f", "false")
    return WriteOptions(dry_run == "All", query.get("fieldManager", ""), validation or "Warn", force)


def _manager_faults(name: str) -> list[Cause]:
    if len(name.encode()) > MAX_MANAGER:
        return [too_long("fieldManager", MAX_MANAGER)]
    for at, mark in enumerate(name):
        if not mark.isprintable():
            why = f"invalid character U+{ord(mark):04X} (at position {at})"
            return [Cause("FieldValueInvalid", "fieldManager", f"Invalid value: {go_quoted(name)}: {why}")]
    return []


def go_quoted(text: str) -> str:
    """A string as Go's `%q` prints it."""
    names = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
    return '"' + "".join(names.get(ord(c)) or (c if c.isprintable() else f"\\x{ord(c):02x}") for c in text) + '"'


def parse_json(body: bytes) -> Json:
    """JSON, with the bytes that are no UTF-8 replaced; raises ValueError in the real server's words."""
    try:
        try:
            return cast(Json, msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return cast(Json, msgspec.json.decode(utf8(body)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(fault(body)) from error


Read = Callable[[bytes], Json]
_JSON: tuple[Read, str] = (parse_json, f"{NO_TYPE}json parse error: ")
READERS: dict[str, tuple[Read, str]] = {
    **dict.fromkeys(JSON_TYPES, _JSON),
    **dict.fromkeys(YAML_TYPES, (load_yaml, "")),
    protobuf.CONTENT_TYPE: (protobuf.read, ""),
}
"""How a body of each media type is read, and the words before what is wrong with it."""


def parsed(read: Read, body: bytes, words: str) -> Json:
    """A body as JSON; raises the 400 of one that cannot be read, `words` around the reason."""
    try:
        return read(body)
    except ValueError as error:
        raise bad_request(words.format(error)) from error


def unrecognized(body: bytes, what: str, why: str) -> ApiError:
    """400: the body is no object; its start is quoted, as text where it looks like JSON, as hexadecimal elsewhere."""
    quoted = body[:QUOTED]
    shown = quoted.decode("utf-8", "replace") if body.lstrip().startswith(b"{") else quoted.hex()
    more = " ..." if len(body) > QUOTED else ""
    return bad_request(
        f"the object provided is unrecognized (must be of type {what}): {why} ({shown + more if body else '<empty>'})"
    )


def read_body(request: Request, what: str) -> Json:
    """The body as JSON, whatever it came as; raises 400 and 415."""
    if request.content_type not in READERS:
        raise statuses.unsupported_media_type()
    read, words = READERS[request.content_type]
    try:
        return read(request.body)
    except ValueError as error:
        raise unrecognized(request.body, what, f"{words}{error}") from error


def read_object(request: Request, kind: Kind, options: WriteOptions) -> Object:
    """The body as an object of `kind`, without its type; fields that are there twice are reported."""
    value = read_body(request, kind.kind)
    twice: list[str] = []
    if options.validation != "Ignore" and request.content_type in JSON_TYPES:
        twice = duplicates(request.body)
    elif options.validation != "Ignore" and request.content_type in YAML_TYPES:
        twice = yaml_duplicates(request.body)
    return typed(value, kind, options, twice, request.body)


def typed(value: Json, kind: Kind, options: WriteOptions, twice: Sequence[str] = (), body: bytes = b"") -> Object:
    """A JSON value as an object of `kind`: type checked, fields decoded; raises a 400."""
    try:
        out, unknown = typed_fields(value, kind, body)
    except DecodeError as error:
        raise bad_request(_not_handled(kind, str(error))) from error
    _report(unknown, twice, kind, options)
    return out


def typed_fields(value: Json, kind: Kind, body: bytes = b"") -> tuple[Object, list[str]]:
    """`(object, paths of dropped fields)` of a JSON value; raises DecodeError and the 400 of another kind.

    `body` is what the value came from, for quoting.
    """
    # Nothing is an object without fields.
    value = {} if value is None else value
    if not isinstance(value, dict):
        why = f"{NO_TYPE}json parse error: json: cannot unmarshal {json_kind(value)} into Go value of type {TYPE_META}"
        raise unrecognized(body or msgspec.json.encode(value), kind.kind, why)
    given = dict(value)
    found_kind, found_version = given.pop("kind", None), given.pop("apiVersion", None)
    for name, found in (("kind", found_kind), ("apiVersion", found_version)):
        if found is not None and not isinstance(found, str):
            why = f"json: cannot unmarshal {json_kind(found)} into Go struct field .{name} of type string"
            raise unrecognized(body or json_text(value), kind.kind, f"{NO_TYPE}json parse error: {why}")
    if str(found_version or "").count("/") > 1:
        why = f"unexpected GroupVersion string: {found_version}"
        raise unrecognized(body or json_text(value), kind.kind, why)
    _check_type(str(found_kind or kind.kind), str(found_version or kind.api_version), kind)
    return decode_fields(given, kind)


def json_text(value: Json) -> bytes:
    """A value as a client is likely to have written it, for quoting."""
    return json.dumps(value, ensure_ascii=False).encode()


def decode_fields(given: Object, kind: Kind) -> tuple[Object, list[str]]:
    """`(object, paths of dropped fields)`; raises DecodeError."""
    if kind.custom is not None:
        custom = CustomDecoder(kind)
        return custom.decode(given), custom.unknown
    decoder = Decoder()
    return decoder.struct(given, struct(f"{kind.schema_home}:{kind.kind}"), ""), decoder.unknown


def _not_handled(kind: Kind, why: str) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}'


def _check_type(found_kind: str, found_version: str, kind: Kind) -> None:
    home = found_version if "/" in found_version else f"core/{found_version}"
    known = found_kind == kind.kind or found_kind in load(home)
    if found_version != kind.api_version or not known:
        version = found_version.rpartition("/")[2]
        raise bad_request(
            f'{found_kind} in version "{version}" cannot be handled as a {kind.kind}: no kind "{found_kind}" is '
            f'registered for version "{found_version}" in scheme '
            '"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"'
        )
    if found_kind != kind.kind:
        raise bad_request(
            f'{found_kind} in version "{kind.version}" cannot be handled as a {kind.kind}: converting '
            f"(v1.{found_kind}) to (core.{kind.kind}): unknown conversion"
        )


def _report(unknown: list[str], twice: Sequence[str], kind: Kind, options: WriteOptions) -> None:
    said = [path if path.startswith("line ") else f'duplicate field "{path}"' for path in twice]
    said += [f'unknown field "{path}"' for path in unknown]
    if not said or options.validation == "Ignore":
        return
    if options.validation == "Strict":
        raise bad_request(_not_handled(kind, "strict decoding error: " + ", ".join(said)))
    options.warnings += said
