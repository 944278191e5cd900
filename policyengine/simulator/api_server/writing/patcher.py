"""PATCH: each patch type applied to the object as its version shows it, and server-side apply."""

import re

from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.decoding.bodies import (
    APPLY_PATCH,
    WriteOptions,
    parse_json,
    parsed,
    typed,
    typed_fields,
)
from policyengine.simulator.api_server.decoding.codec import DecodeError, json_kind
from policyengine.simulator.api_server.decoding.json_and_yaml import load_yaml
from policyengine.simulator.api_server.field_errors import invalid as invalid_value
from policyengine.simulator.api_server.field_errors import required
from policyengine.simulator.api_server.http_requests import RequestInfo
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request
from policyengine.simulator.api_server.storage import Object, child, encode, metadata
from policyengine.simulator.api_server.writing import managed_fields as server_side
from policyengine.simulator.api_server.writing import patch_formats as patches
from policyengine.simulator.api_server.writing.call import Call
from policyengine.simulator.api_server.writing.field_paths import held, mistyped
from policyengine.simulator.api_server.writing.managed_fields import APPLY, Manager, owned_part
from policyengine.simulator.api_server.writing.rest_storage import Registry

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
KEPT_BY_APPLY = ("kind", "apiVersion")


_RESTORE = re.compile(r"json: cannot unmarshal (\w+) into Go struct field \S+ of type (\[\]|map|\w+).*")


def _go_kind(json_name: str) -> str:
    return {"number": "int64", "array": "slice", "[]": "slice", "object": "map"}.get(json_name, json_name)


def patch(registry: Registry, call: Call) -> tuple[int, bytes]:
    """`(status, stored bytes)`; raises 400, 404, 409, 415 and 422."""
    kind, content = call.kind, call.request.content_type
    if content == APPLY_PATCH:
        return _apply(registry, call)
    if content not in (MERGE, STRATEGIC, JSON_PATCH) or (content == STRATEGIC and kind.custom is not None):
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    body = parsed(parse_json, call.request.body, "{}" if content == STRATEGIC else "error decoding patch: {}")

    def transform(current: Object) -> Object:
        return _patched(kind, current, body, content, call.options)

    return 200, registry.update(call, transform, verb="patch")


def _apply(registry: Registry, call: Call) -> tuple[int, bytes]:
    kind, info, options, sub = call.kind, call.info, call.options, call.info.subresource
    if not options.field_manager:
        cause = required("fieldManager", "is required for apply patch")
        raise statuses.invalid("PatchOptions", "meta.k8s.io", "", [cause])
    value = parsed(load_yaml, call.request.body, "error decoding YAML: error converting YAML to JSON: {}")
    config = _decoded(registry, kind, _configuration(kind, value, info))
    metadata(config)["name"] = info.name
    if kind.namespaced:
        metadata(config)["namespace"] = info.namespace
    manager = Manager(options.field_manager, APPLY, kind.api_version, sub)
    shape, now = registry.shape(kind), registry.now()

    def transform(current: Object) -> Object:
        version = metadata(config).get("resourceVersion")
        merged = server_side.apply(current, config, shape, manager, options.force, kind.has_status, now)
        whole = typed({**merged, **kind.type_meta()}, kind, WriteOptions(validation="Ignore"))
        if version:
            metadata(whole)["resourceVersion"] = version
        return whole

    try:
        return 200, registry.update(call, transform, verb="apply", owned=False)
    except ApiError as error:
        if error.code != 404 or error.reason != "NotFound" or sub:
            raise
        whole = typed({**config, **kind.type_meta()}, kind, WriteOptions(validation="Ignore"))
        names = owned_part(set(held(server_side.owned_object(config), shape)), "", kind.has_status)
        return 201, registry.create(call, whole, (manager, names))


def _decoded(registry: Registry, kind: Kind, given: Object) -> Object:
    """The configuration with its values in canonical form, and no field it does not say."""
    if kind.custom is None:
        wrong = mistyped(given, registry.shape(kind))
        if wrong:
            raise _untyped(kind, given, wrong)
    try:
        whole, unknown = typed_fields(given, kind)
    except DecodeError as error:
        raise _untyped(kind, given, str(error)) from error
    if unknown:
        raise _untyped(kind, given, ", ".join(f".{path}: field not declared in schema" for path in unknown))
    said = _only_said(whole, {k: v for k, v in given.items() if k not in KEPT_BY_APPLY})
    config = said if isinstance(said, dict) else {}
    config.setdefault("metadata", {})
    return config


def _patched(kind: Kind, current: Object, body: Json, content: str, options: WriteOptions) -> Object:
    whole = {**current, **kind.type_meta()}
    if content == MERGE:
        if body is None:
            raise bad_request("Invalid JSON Patch")
        if not isinstance(body, dict):
            why = f"cannot unmarshal {json_kind(body)} into Go value of type map[string]interface {{}}"
            raise bad_request(f"error decoding patch: json: {why}")
        merged = patches.merge(whole, body)
    elif content == JSON_PATCH:
        merged = patches.apply_json_patch(whole, body)
    else:
        assert kind.struct is not None
        merged = patches.apply_strategic(whole, body, kind.struct)
    return _typed_result(merged, body if content == STRATEGIC else merged, content, kind, options)


def _configuration(kind: Kind, value: Json, info: RequestInfo) -> Object:
    given = value if isinstance(value, dict) else {}
    meta = given.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    found, version = str(given.get("kind") or ""), str(given.get("apiVersion") or "")
    if (found, version) != (kind.kind, kind.api_version):
        raise bad_request(f"invalid object type: {version if '/' in version else '/' + version}, Kind={found}")
    if isinstance(meta, dict) and meta.get("name") not in (None, "", info.name):
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({info.name})")
    return given


def _untyped(kind: Kind, given: Object, why: str) -> ApiError:
    """500, the real server's answer to a configuration that is not of its type."""
    meta = child(given, "metadata")
    identity = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {kind.group}/{kind.version}, Kind={kind.kind}"
    return ApiError(500, "", f"failed to create typed patch object ({identity}): {why}")


def _typed_result(merged: Json, shown: Json, content: str, kind: Kind, options: WriteOptions) -> Object:
    """A patched object decoded; raises the 422 of a patch that makes no object of the kind."""
    if not isinstance(merged, dict):
        raise bad_request(f"error decoding patch: the patched {kind.kind} is no object")
    try:
        return typed(merged, kind, options)
    except ApiError as error:
        marker = f"cannot be handled as a {kind.kind}: "
        if marker not in error.message:
            raise
        text = go_text(shown) if content == STRATEGIC else encode(shown).decode()
        why = error.message.partition(marker)[2]
        restored = _RESTORE.fullmatch(why) if content == STRATEGIC else None
        if restored:
            # A strategic patch is converted without JSON in between, and says so in its own words.
            found, wanted = restored.groups()
            why = f"cannot restore {_go_kind(wanted)} from {_go_kind(found)}"
        cause = invalid_value("patch", text, why)
        raise statuses.invalid("", "", "", [cause]) from error


def go_text(value: Json) -> str:
    """A value as Go's `%v` prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_text(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _only_said(whole: Json, given: Json) -> Json:
    """`whole` cut down to the parts that are in `given`."""
    if isinstance(whole, dict) and isinstance(given, dict):
        return {k: _only_said(v, given[k]) for k, v in whole.items() if k in given}
    if isinstance(whole, list) and isinstance(given, list) and len(whole) == len(given):
        return [_only_said(a, b) for a, b in zip(whole, given, strict=True)]
    return whole
