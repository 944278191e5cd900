"""Creating, updating, patching and deleting objects: the one way every kind is written.

Order of a write, as the real server's: decode, admission (namespace there and not terminating), defaults, the kind's
own preparation, validation, field ownership, storage. Nothing here waits, so a write is never interleaved. Names and
UIDs come from a seeded generator, so that a run can be repeated byte for byte.
"""

from collections.abc import Callable
from dataclasses import dataclass

from policyengine.clock import Clock
from policyengine.cluster.objects import format_time
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.decoding.bodies import decode_fields
from policyengine.simulator.api_server.decoding.custom_resources import validate_custom
from policyengine.simulator.api_server.field_errors import invalid as invalid_value
from policyengine.simulator.api_server.http_requests import User
from policyengine.simulator.api_server.kinds.api_types import Field, Type
from policyengine.simulator.api_server.kinds.served import Kind, Kinds
from policyengine.simulator.api_server.reading.representation import from_storage, to_storage
from policyengine.simulator.api_server.statuses import Json, bad_request
from policyengine.simulator.api_server.storage import (
    Collection,
    Entry,
    Object,
    Store,
    child,
    encode,
    key_of,
    metadata,
)
from policyengine.simulator.api_server.validation.metadata_rules import validate_metadata, validate_metadata_update
from policyengine.simulator.api_server.validation.rules import validate
from policyengine.simulator.api_server.writing import managed_fields, strategies
from policyengine.simulator.api_server.writing.call import Call, Caller, Names
from policyengine.simulator.api_server.writing.defaults import apply_defaults
from policyengine.simulator.api_server.writing.field_paths import TREE, Path, plain

SYSTEM_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
NAME_TRIES = 8

Transform = Callable[[Object], Object]
Guard = Callable[[Kind, Object, Object | None, User, str], None]
"""Admission of a write: kind, object, the object before (None: it is new), who writes, and the request's verb."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write as it took effect, one a resourceVersion; requests that changed nothing are none."""

    verb: str
    kind: Kind
    before: Entry | None
    """None for a create."""
    entry: Entry
    """What was stored; of a removal, what went."""
    obj: Object | None
    """The object now; None where it is gone."""
    caller: Caller
    subresource: str = ""


class Registry:
    """All objects of one server, and how they may change."""

    def __init__(
        self, store: Store, kinds: Kinds, clock: Clock, names: Names, after_write: Callable[[Write], None]
    ) -> None:
        self.store = store
        self.kinds = kinds
        self.clock = clock
        self.names = names
        self._after_write = after_write
        self.guards: list[Guard] = []

    def now(self) -> str:
        """The time as the API writes it."""
        return format_time(self.clock.now())

    def collection(self, kind: Kind) -> Collection:
        """Where a kind's objects lie."""
        return self.store.collection(kind.storage_key)

    def empty(self, kind: Kind) -> Object:
        """The kind's zero object."""
        return {"metadata": {}} if kind.custom is not None else decode_fields({}, kind)[0]

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        """The stored object; raises a 404."""
        found = self.collection(kind).entries.get(key_of(namespace if kind.namespaced else "", name))
        if found is None:
            raise statuses.not_found(kind.plural, kind.group, name)
        return found

    def read(self, kind: Kind, namespace: str, name: str) -> Object:
        """The object in this kind's version, free to change; raises a 404."""
        return from_storage(kind, self.entry(kind, namespace, name).object())

    # Writing

    def commit(
        self, kind: Kind, verb: str, before: Entry | None, obj: Object, caller: Caller, subresource: str = ""
    ) -> Entry:
        """Store `obj` (in storage form) under the next revision."""
        meta = metadata(obj)
        revision = self.store.next_revision()
        meta["resourceVersion"] = str(revision)
        namespace, name = str(meta.get("namespace") or ""), str(meta["name"])
        entry = Entry(namespace, name, str(meta.get("uid", "")), revision, encode(obj))
        self.collection(kind).put(key_of(namespace, name), entry)
        self._after_write(Write(verb, kind, before, entry, obj, caller, subresource))
        return entry

    def discard(self, kind: Kind, before: Entry, caller: Caller) -> Entry:
        """Remove an object; the answer is how it was last, at the removal's revision."""
        obj = before.object()
        revision = self.store.next_revision()
        metadata(obj)["resourceVersion"] = str(revision)
        last = Entry(before.namespace, before.name, before.uid, revision, encode(obj))
        self.collection(kind).remove(key_of(before.namespace, before.name), last)
        self._after_write(Write("delete", kind, before, last, None, caller))
        return last

    # Creating

    def create(self, call: Call, obj: Object, applied: tuple[managed_fields.Manager, set[Path]] | None = None) -> bytes:
        """Create `obj`; the stored bytes. Raises 400, 403, 404, 409 and 422.

        `applied`: who owns which fields, where the object comes from a server-side apply.
        """
        kind = call.kind
        meta = metadata(obj)
        if meta.pop("resourceVersion", None):
            raise bad_request("resourceVersion should not be set on objects to be created")
        self._place(kind, call.info.namespace, meta)
        if kind.namespaced:
            self.admit_namespace(kind, str(meta["namespace"]), str(meta.get("name") or ""))
        for name in ("selfLink", "managedFields", *SYSTEM_METADATA):
            meta.pop(name, None)
        empty = self.empty(kind)
        if kind.custom is not None and kind.has_status:
            obj.pop("status", None)
        elif kind.kind not in strategies.KEEPS_STATUS_ON_CREATE and "status" in empty:
            obj["status"] = empty["status"]
        apply_defaults(kind.kind, obj)
        now = self.now()
        if applied is None:
            # What admission and the server add below is nobody's.
            self.own(call, empty, obj)
        for guard in self.guards:
            guard(kind, obj, None, call.caller.user, "create")
        generated = self._name(kind, meta)
        meta["uid"] = self.names.uid()
        meta["creationTimestamp"] = now
        if kind.kind in strategies.CREATE:
            strategies.CREATE[kind.kind](obj, now)
        if kind.kind == "Service":
            strategies.give_address(obj, self.store)
        strategies.count_generation(kind, obj, None)
        self._check(kind, obj, None)
        if applied is not None:
            owners = managed_fields.Ownership({applied[0]: applied[1]}, {applied[0]: now})
            meta["managedFields"] = owners.write()
        key = key_of(str(meta.get("namespace") or ""), str(meta["name"]))
        if self.collection(kind).entries.get(key) is not None:
            error = statuses.already_exists(kind.plural, kind.group, str(meta["name"]))
            if generated:
                error.message += ", the server was not able to generate a unique name for the object"
            raise error
        stored = to_storage(kind, obj)
        return encode(stored) if call.options.dry_run else self.commit(kind, "create", None, stored, call.caller).raw

    def _place(self, kind: Kind, namespace: str, meta: Object) -> None:
        given = str(meta.get("namespace") or "")
        if not kind.namespaced:
            meta.pop("namespace", None)
            return
        if given and given != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = namespace

    def _name(self, kind: Kind, meta: Object) -> bool:
        """Choose a name where one is to be generated; whether it was."""
        base = str(meta.get("generateName") or "")
        if meta.get("name") or not base:
            return False
        for _ in range(NAME_TRIES):
            meta["name"] = self.names.generate(base)
            key = key_of(str(meta.get("namespace") or ""), str(meta["name"]))
            if self.collection(kind).entries.get(key) is None:
                break
        return True

    def admit_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        """Refuse to create in a namespace that is not there, or is going."""
        found = self.store.collection(("", "namespaces")).entries.get(namespace)
        if found is None:
            raise statuses.not_found("namespaces", "", namespace)
        if metadata(found.object()).get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = statuses.forbidden(kind.plural, kind.group, name, why)
            cause: Json = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error

    def _check(self, kind: Kind, obj: Object, old: Object | None) -> None:
        causes = validate_metadata(obj, kind.kind, kind.namespaced)
        if old is not None:
            causes += validate_metadata_update(obj, old)
        stored = to_storage(kind, obj)
        if kind.custom is not None:
            causes += validate_custom(obj, kind)
        else:
            causes += validate(kind.kind, stored, None if old is None else to_storage(kind, old))
        if causes:
            # An Event's rules are checked in its internal form, whose group is the core's.
            group = "" if kind.kind == "Event" else kind.group
            raise statuses.invalid(kind.kind, group, str(metadata(obj).get("name") or ""), causes)

    def own(self, call: Call, old: Object, new: Object) -> None:
        """Write down in `new` who changed what since `old`."""
        kind = call.kind
        name = managed_fields.manager_of(call.caller.user_agent, call.options.field_manager)
        manager = managed_fields.Manager(name, managed_fields.UPDATE, kind.api_version, call.info.subresource)
        managed_fields.record_update(old, new, self.shape(kind), manager, kind.has_status, self.now())

    def shape(self, kind: Kind) -> Field:
        """How a kind's fields are owned."""
        return plain(Type("struct", ref=f"{kind.schema_home}:{kind.kind}")) if kind.custom is None else TREE

    # Updating

    def update(self, call: Call, transform: Transform, verb: str = "update", owned: bool = True) -> bytes:
        """Replace an object by what `transform` makes of it; the stored bytes. Raises 404, 409 and 422.

        `owned` False: `transform` has written managedFields itself.
        """
        kind, name, subresource = call.kind, call.info.name, call.info.subresource
        before = self.entry(kind, call.info.namespace, name)
        old = from_storage(kind, before.object())
        new = transform(from_storage(kind, before.object()))
        self._match(kind, old, new, name, verb)
        self._keep_system_fields(kind, old, new, subresource)
        for guard in self.guards:
            guard(kind, new, old, call.caller.user, "update" if verb == "update" else "patch")
        apply_defaults(kind.kind, new)
        if kind.kind in strategies.UPDATE:
            strategies.UPDATE[kind.kind](new, old)
        strategies.count_generation(kind, new, old)
        self._check(kind, new, old)
        if new == old:
            metadata(new)["managedFields"] = metadata(old).get("managedFields", [])
            return before.raw
        if owned:
            self.own(call, old, new)
        stored = to_storage(kind, new)
        if call.options.dry_run:
            return encode(stored)
        entry = self.commit(kind, verb, before, stored, call.caller, subresource)
        return self._finish_deletion(kind, entry, stored, call.caller)

    def _match(self, kind: Kind, old: Object, new: Object, name: str, verb: str) -> None:
        """The update must mean the object that is there, in the version that is there."""
        held, given = metadata(old), metadata(new)
        if given.get("name") and given["name"] != name:
            raise bad_request(f"the name of the object ({given['name']}) does not match the name on the URL ({name})")
        if given.get("namespace") and given["namespace"] != held.get("namespace"):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        given["name"] = name
        uid, version = given.get("uid"), given.get("resourceVersion")
        if uid and uid != held["uid"]:
            if verb != "update":
                # Checked for every object, and again by the kind: told twice.
                fault = invalid_value("metadata.uid", uid, "field is immutable")
                raise statuses.invalid(kind.kind, kind.group, name, [fault, fault])
            where = f"/registry/{kind.plural}/{key_of(str(held.get('namespace') or ''), name)}"
            why = (
                f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: "
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {held['uid']}"
            )
            raise statuses.conflict(kind.plural, kind.group, name, why)
        if version and version != held["resourceVersion"]:
            raise statuses.conflict(kind.plural, kind.group, name, statuses.MODIFIED)
        if not version and "versioned" in kind.traits:
            cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise statuses.invalid(kind.plural, kind.group, name, [cause])

    def _keep_system_fields(self, kind: Kind, old: Object, new: Object, subresource: str) -> None:
        held, given = metadata(old), metadata(new)
        given["resourceVersion"] = held["resourceVersion"]
        for name in SYSTEM_METADATA + (("namespace",) if kind.namespaced else ()):
            given.pop(name, None)
            if name in held:
                given[name] = held[name]
        if "managedFields" not in given and "managedFields" in held:
            given["managedFields"] = held["managedFields"]
        if subresource == "status":
            for name in {*old, *new} - {"metadata", "status"}:
                _restore(new, old, name)
            if "ownerReferences" in held or "ownerReferences" in given:
                _restore(given, held, "ownerReferences")
        elif kind.has_status:
            _restore(new, old, "status")

    def _finish_deletion(self, kind: Kind, entry: Entry, stored: Object, caller: Caller) -> bytes:
        """An object being deleted goes when its last finalizer does."""
        meta = metadata(stored)
        finalizers = meta.get("finalizers") or (kind.kind == "Namespace" and child(stored, "spec").get("finalizers"))
        if meta.get("deletionTimestamp") and not finalizers and not meta.get("deletionGracePeriodSeconds"):
            return self.discard(kind, entry, caller).raw
        return entry.raw


def _restore(new: Object, old: Object, name: str) -> None:
    new.pop(name, None)
    if name in old:
        new[name] = old[name]
