"""Reading request bodies: JSON or YAML into an object of the kind asked for, with the real server's refusals.

`fieldValidation` says what happens to fields the kind does not know: Ignore drops them, Warn (the default) drops
them and warns, Strict refuses the request (https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import msgspec
import yaml

from policyengine.simulator.api_server import protobuf
from policyengine.simulator.api_server.codec import DecodeError, Decoder, json_kind
from policyengine.simulator.api_server.crds import CustomDecoder
from policyengine.simulator.api_server.kinds import Kind
from policyengine.simulator.api_server.requests import Request
from policyengine.simulator.api_server.schema import struct
from policyengine.simulator.api_server.statuses import (
    MAX_BODY,
    ApiError,
    Cause,
    Json,
    bad_request,
    invalid,
    too_large,
    unsupported_media_type,
)
from policyengine.simulator.api_server.storage import Object
from policyengine.simulator.api_server.validation import unsupported

JSON_TYPES = ("", "application/json")
YAML_TYPES = ("application/yaml", "application/x-yaml")
MAX_QUOTED = 1024
NO_TYPE = "couldn't get version/kind; "
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_AT_BYTE = re.compile(r"byte (\d+)\)?$")


@dataclass(slots=True)
class WriteOptions:
    """What a write's query asks for besides the write."""

    dry_run: bool = False
    field_manager: str = ""
    validation: str = "Warn"
    force: bool = False
    warnings: list[str] = field(default_factory=list)


def write_options(query: Mapping[str, str], what: str) -> WriteOptions:
    """The options of a write, called `what` in the 422 of those that do not exist."""
    dry_run, validation = query.get("dryRun", ""), query.get("fieldValidation", "")
    causes: list[Cause] = []
    if dry_run not in ("", "All"):
        causes.append(unsupported("dryRun", [dry_run], ("All",)))
    if validation not in ("", "Ignore", "Warn", "Strict"):
        causes.append(unsupported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if causes:
        raise invalid(what, "meta.k8s.io", "", causes)
    force = query.get("force", "").lower() in ("1", "t", "true")
    return WriteOptions(dry_run == "All", query.get("fieldManager", ""), validation or "Warn", force)


def check_size(request: Request) -> None:
    """Raise the 413 of a body over 3 MiB."""
    if len(request.body) > MAX_BODY:
        raise too_large()


def parse_json(body: bytes, what: str) -> Json:
    """JSON of a body; raises the 400 that quotes it."""
    try:
        return cast(Json, msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unrecognized(body, what, f"{NO_TYPE}json parse error: {go_json_error(body, str(error))}") from error


def parse_patch(body: bytes) -> Json:
    """JSON of a patch; raises a 400."""
    try:
        return cast(Json, msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"error decoding patch: {go_json_error(body, str(error))}") from error


def unrecognized(body: bytes, what: str, why: str) -> ApiError:
    """400: the body is no object; it is quoted as text where it looks like JSON, as hexadecimal elsewhere."""
    shown = body[:MAX_QUOTED].decode("utf-8", "replace") if body.lstrip().startswith(b"{") else body[:MAX_QUOTED].hex()
    return bad_request(f"the object provided is unrecognized (must be of type {what}): {why} ({shown or '<empty>'})")


def go_json_error(body: bytes, why: str) -> str:
    """A JSON fault as Go's decoder words it; `why` is msgspec's word, which ends in `(byte N)`."""
    found = _AT_BYTE.search(why)
    if "truncated" in why or not body.strip() or found is None or int(found.group(1)) >= len(body):
        return "unexpected end of JSON input"
    byte = body[int(found.group(1))]
    shown = chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"
    where = (
        "looking for beginning of object key string"
        if "keys must be strings" in why
        else ("looking for beginning of value")
    )
    return f"invalid character '{shown}' {where}"


class _NoAliases(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML without aliases, which could make a small text a huge object, and without dates."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        return cast("yaml.Node | None", super().compose_node(parent, index))


_NoAliases.yaml_implicit_resolvers = {
    mark: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for mark, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _load_yaml(body: bytes) -> Json:
    """YAML of a body; raises ValueError with a Go-like message."""
    try:
        return cast(Json, yaml.load(body, Loader=_NoAliases))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"yaml: line {line}: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"yaml: {str(error).splitlines()[0]}") from error


def parse_yaml(body: bytes, what: str) -> Json:
    """YAML of a body; raises a 400."""
    try:
        return _load_yaml(body)
    except ValueError as error:
        raise unrecognized(body, what, str(error)) from error


def parse_configuration(body: bytes) -> Json:
    """YAML of an applied configuration; raises a 400."""
    try:
        return _load_yaml(body)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from error


def read_body(request: Request, what: str) -> Json:
    """The body as JSON, whatever it came as; raises 400, 413 and 415."""
    check_size(request)
    if request.content_type in YAML_TYPES:
        return parse_yaml(request.body, what)
    if request.content_type == protobuf.CONTENT_TYPE:
        return protobuf.read(request.body)
    if request.content_type not in JSON_TYPES:
        raise unsupported_media_type()
    return parse_json(request.body, what)


def read_object(request: Request, kind: Kind, options: WriteOptions) -> Object:
    """The body as an object of `kind`, without its type."""
    return typed(read_body(request, kind.kind), kind, options)


def typed(value: Json, kind: Kind, options: WriteOptions) -> Object:
    """A JSON value as an object of `kind`: type checked, fields decoded; raises a 400."""
    try:
        out, unknown = typed_fields(value, kind)
    except DecodeError as error:
        raise bad_request(_not_handled(kind, str(error))) from error
    _report(unknown, kind, options)
    return out


def typed_fields(value: Json, kind: Kind) -> tuple[Object, list[str]]:
    """`(object, paths of dropped fields)` of a JSON value; raises DecodeError and the 400 of another kind."""
    if not isinstance(value, dict):
        why = f"{NO_TYPE}json parse error: json: cannot unmarshal {json_kind(value)} into Go value of type {TYPE_META}"
        raise unrecognized(msgspec.json.encode(value), kind.kind, why)
    given = dict(value)
    found_kind, found_version = given.pop("kind", None), given.pop("apiVersion", None)
    _check_type(str(found_kind or kind.kind), str(found_version or kind.api_version), kind)
    return decode_fields(given, kind)


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
    if found_version != kind.api_version:
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


def _report(unknown: list[str], kind: Kind, options: WriteOptions) -> None:
    if not unknown or options.validation == "Ignore":
        return
    said = [f'unknown field "{path}"' for path in unknown]
    if options.validation == "Strict":
        raise bad_request(_not_handled(kind, "strict decoding error: " + ", ".join(said)))
    options.warnings += said


def object_or_empty(value: Json) -> Object:
    """A JSON object, or an empty one in its place."""
    return value if isinstance(value, dict) else {}
