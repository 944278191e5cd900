"""Deleting: preconditions, finalizers, a pod's grace period, and what is answered.

A pod is first marked (deletionTimestamp, grace, one more generation) and removed at once where its grace is 0:
not bound yet, finished, or asked for. Any other object goes at once unless a finalizer holds it
(k8s.io/apiserver registry/rest BeforeDelete, pkg/registry/core/pod CheckGracefulDelete).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_info import seconds_or_none
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.decoding.bodies import READERS, parsed
from policyengine.simulator.api_server.decoding.codec import json_kind
from policyengine.simulator.api_server.field_errors import invalid as invalid_value
from policyengine.simulator.api_server.field_errors import unsupported
from policyengine.simulator.api_server.http_requests import Request
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import Cause, Json, bad_request
from policyengine.simulator.api_server.storage import Entry, Object, child, metadata, texts
from policyengine.simulator.api_server.writing.call import Caller
from policyengine.simulator.api_server.writing.rest_storage import Registry


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a DELETE asks for besides."""

    grace: int | None = None
    uid: str = ""
    resource_version: str = ""
    propagation: str = ""
    dry_run: bool = False


def parse_delete_options(query: Mapping[str, str], body: Json) -> DeleteOptions:
    """Options from the body, else from the query; raises a 400."""
    given = body if isinstance(body, dict) else {}
    preconditions = child(given, "preconditions")
    grace: Json = given.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds"):
        text = query["gracePeriodSeconds"]
        if not text.lstrip("-").isdecimal():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        grace = int(text)
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        found = f"json: cannot unmarshal {json_kind(grace)} into Go struct field "
        raise bad_request(f"{found}DeleteOptions.gracePeriodSeconds of type int64")
    propagation = str(given.get("propagationPolicy") or query.get("propagationPolicy") or "")
    asked: list[Json] = [query["dryRun"]] if query.get("dryRun") else []
    desired: Json = given.get("dryRun") or asked
    dry_run: list[Json] = desired if isinstance(desired, list) else [desired]
    causes = _propagation_faults(propagation, given.get("orphanDependents"))
    if any(word != "All" for word in dry_run):
        causes.append(unsupported("dryRun", dry_run, ("All",)))
    if causes:
        raise statuses.invalid("DeleteOptions", "meta.k8s.io", "", causes)
    uid, version = str(preconditions.get("uid") or ""), str(preconditions.get("resourceVersion") or "")
    return DeleteOptions(grace, uid, version, propagation, bool(dry_run))


def _propagation_faults(propagation: str, orphans: Json) -> list[Cause]:
    if propagation and orphans is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        return [invalid_value("propagationPolicy", propagation, why)]
    if propagation in ("", "Orphan", "Background", "Foreground"):
        return []
    text = f'Unsupported value: "{propagation}": supported values: "Foreground", "Background", "Orphan", "nil"'
    return [Cause("FieldValueNotSupported", "propagationPolicy", text)]


def read_delete_options(request: Request) -> DeleteOptions:
    """The options of a DELETE, from its body and query; raises 400, 413, 415 and 422."""
    if not request.body:
        return parse_delete_options(request.query, {})
    if request.content_type not in READERS:
        raise statuses.unsupported_media_type()
    read, words = READERS[request.content_type]
    body = parsed(read, request.body, words + "{}")
    kind = body.get("kind") if isinstance(body, dict) else None
    if kind not in (None, "DeleteOptions") and isinstance(body, dict):
        version = body.get("apiVersion") or "v1"
        scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
        raise bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"')
    return parse_delete_options(request.query, body)


FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def _propagate(meta: Object, policy: str) -> bool:
    """Have the garbage collector see to dependents before the object goes, or leave them; whether that is news."""
    if not policy:
        return False
    held = texts(meta.get("finalizers"))
    kept: list[Json] = [name for name in held if name not in FINALIZERS.values()]
    if policy in FINALIZERS:
        kept.append(FINALIZERS[policy])
    if kept:
        meta["finalizers"] = kept
    else:
        meta.pop("finalizers", None)
    return kept != held


def delete(
    registry: Registry, kind: Kind, namespace: str, name: str, options: DeleteOptions, caller: Caller
) -> tuple[bytes | None, dict[str, Json]]:
    """`(stored bytes to answer with, or None; details for a Status answer)`. Raises 404 and 409."""
    before = registry.entry(kind, namespace, name)
    _check(kind, before, options)
    details: dict[str, Json] = {"name": name}
    if kind.group:
        details["group"] = kind.group
    details.update(kind=kind.plural, uid=before.uid)
    if options.dry_run:
        return before.raw if "returned" in kind.traits else None, details
    marked, gone = _mark(registry, kind, before, options, caller)
    if not gone:
        return marked.raw, details
    last = registry.discard(kind, marked, caller)
    return last.raw if "returned" in kind.traits else None, details


def _check(kind: Kind, before: Entry, options: DeleteOptions) -> None:
    if options.uid and options.uid != before.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({before.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise statuses.conflict(kind.kind, kind.group, before.name, why)
    if options.resource_version and options.resource_version != str(before.revision):
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({before.revision}). The object might have been modified"
        )
        raise statuses.conflict(kind.kind, kind.group, before.name, why)


def _mark(registry: Registry, kind: Kind, before: Entry, options: DeleteOptions, caller: Caller) -> tuple[Entry, bool]:
    """Mark an object as going; `(entry, whether it goes now)`."""
    obj = before.object()
    if kind.kind == "Namespace":
        finalizers = child(obj, "spec").get("finalizers") or metadata(obj).get("finalizers")
        if metadata(obj).get("deletionTimestamp") or not finalizers:
            return before, not finalizers
        metadata(obj)["deletionTimestamp"] = registry.now()
        obj["status"] = {**child(obj, "status"), "phase": "Terminating"}
        return registry.commit(kind, "delete", before, obj, caller), False
    told = _propagate(metadata(obj), options.propagation)
    if kind.kind == "Pod":
        return _mark_pod(registry, kind, before, obj, options, caller)
    if not metadata(obj).get("finalizers"):
        return before, True
    if metadata(obj).get("deletionTimestamp"):
        return (registry.commit(kind, "delete", before, obj, caller) if told else before), False
    _stamp(registry, obj, 0)
    return registry.commit(kind, "delete", before, obj, caller), False


def _stamp(registry: Registry, obj: Object, grace: int, at: float | None = None, counts: bool = True) -> None:
    meta = metadata(obj)
    when = registry.clock.now() if at is None else at
    meta["deletionTimestamp"] = format_time(when + grace)
    meta["deletionGracePeriodSeconds"] = grace
    generation = meta.get("generation")
    if counts and isinstance(generation, int) and generation > 0:
        meta["generation"] = generation + 1


def _mark_pod(
    registry: Registry, kind: Kind, before: Entry, obj: Object, options: DeleteOptions, caller: Caller
) -> tuple[Entry, bool]:
    meta, held = metadata(obj), bool(metadata(obj).get("finalizers"))
    grace = _grace(obj, options)
    current = meta.get("deletionGracePeriodSeconds")
    if meta.get("deletionTimestamp"):
        if not isinstance(current, int) or current == 0:
            return before, not held
        if options.grace is None or grace >= current:
            return before, False
        stamp = seconds_or_none(meta["deletionTimestamp"]) or registry.clock.now()
        _stamp(registry, obj, grace, stamp - current, counts=False)
    else:
        _stamp(registry, obj, grace)
    marked = registry.commit(kind, "delete", before, obj, caller)
    return marked, grace == 0 and not held


def _grace(pod: Object, options: DeleteOptions) -> int:
    spec, phase = child(pod, "spec"), child(pod, "status").get("phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    desired = options.grace if options.grace is not None else spec.get("terminationGracePeriodSeconds")
    grace = desired if isinstance(desired, int) else 0
    return 1 if grace < 0 else grace
