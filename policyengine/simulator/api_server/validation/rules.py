"""What every object's metadata must be, and the rules for everything else, as small functions that are put together.

Texts are those of k8s.io/apimachinery's validation; `Cause.kind` is the machine-readable reason. A rule takes an object
and its path, and yields what is wrong with it. Worked example: a toleration's effect may be left out, and otherwise is
one of three, at `spec.tolerations[1].effect`:

    each("tolerations", field("effect", one_of("NoSchedule", "PreferNoSchedule", "NoExecute"), optional=True))
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import cast

from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.store import Object, child, metadata, objects

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
QUALIFIED_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
CONFIG_KEY = r"[-._a-zA-Z0-9]+"
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{QUALIFIED_NAME}')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    f"validation is '{LABEL_VALUE}')"
)
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
MAX_SUBDOMAIN, MAX_LABEL, MAX_ANNOTATIONS = 253, 63, 256 * 1024
LABEL_NAMED = frozenset({"Namespace", "LimitRange", "Service"})
PATH_NAMED = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})


def quoted(value: Json) -> str:
    """A bad value as errors print it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid(field: str, value: Json, why: str) -> Cause:
    """The value is no good."""
    return Cause("FieldValueInvalid", field, f"Invalid value: {quoted(value)}: {why}")


def required(field: str, why: str = "") -> Cause:
    """The value is missing."""
    return Cause("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")


def forbidden(field: str, why: str) -> Cause:
    """The value may not be there."""
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


def duplicate(field: str, value: Json) -> Cause:
    """The value is there twice."""
    return Cause("FieldValueDuplicate", field, f"Duplicate value: {quoted(value)}")


def unsupported(field: str, value: Json, allowed: tuple[str, ...]) -> Cause:
    """The value is none of those allowed."""
    names = ", ".join(f'"{name}"' for name in allowed)
    return Cause("FieldValueNotSupported", field, f"Unsupported value: {quoted(value)}: supported values: {names}")


def too_long(field: str, limit: int) -> Cause:
    """The value is too long, in bytes."""
    return Cause("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


NameRule = Callable[[str], list[str]]


def _faults(text: str, pattern: str, limit: int, wording: str) -> list[str]:
    unit = "characters" if limit == MAX_SUBDOMAIN else "bytes"
    found = [] if len(text) <= limit else [f"must be no more than {limit} {unit}"]
    return found if re.fullmatch(pattern, text) else [*found, wording]


def subdomain(text: str) -> list[str]:
    """What is wrong with a DNS-1123 subdomain."""
    return _faults(text, SUBDOMAIN, MAX_SUBDOMAIN, SUBDOMAIN_TEXT)


def dns_label(text: str) -> list[str]:
    """What is wrong with a name that is a DNS-1123 label."""
    found = [] if len(text) <= MAX_LABEL else [f"must be no more than {MAX_LABEL} characters"]
    if re.fullmatch(LABEL, text):
        return found
    return [*found, "must not contain dots" if "." in text else LABEL_TEXT]


def path_segment(text: str) -> list[str]:
    """What is wrong with a name that only has to be a path segment."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{mark}'" for mark in "/%" if mark in text]


def name_rule(kind: str) -> NameRule:
    """How objects of a kind may be called."""
    if kind in LABEL_NAMED:
        return dns_label
    return path_segment if kind in PATH_NAMED else subdomain


def qualified_name(text: str) -> list[str]:
    """What is wrong with a label key or resource name."""
    prefix, slash, name = text.rpartition("/")
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += ["prefix part " + fault for fault in subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > MAX_LABEL:
        found.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not re.fullmatch(QUALIFIED_NAME, name):
        found.append(QUALIFIED_TEXT)
    return found


def validate_labels(labels: Json, field: str) -> list[Cause]:
    """Keys and values of labels."""
    found: list[Cause] = []
    for key, value in (labels if isinstance(labels, dict) else {}).items():
        found += [invalid(field, key, why) for why in qualified_name(key)]
        found += [invalid(field, value, why) for why in _faults(str(value), LABEL_VALUE, MAX_LABEL, VALUE_TEXT)]
    return found


def validate_metadata(obj: Object, kind: str, namespaced: bool) -> list[Cause]:
    """A new or changed object's metadata."""
    meta = metadata(obj)
    rule, found = name_rule(kind), list[Cause]()
    base, name = str(meta.get("generateName") or ""), str(meta.get("name") or "")
    if base:
        # A generated name continues, so a dash may end the base; a dot would leave an empty part.
        found += [invalid("metadata.generateName", base, why) for why in rule(re.sub(r"-$", "a", base))]
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    elif kind != "Event" or not base or not found:
        found += [invalid("metadata.name", name, why) for why in rule(name)]
    if namespaced and not meta.get("namespace"):
        found.append(required("metadata.namespace"))
    found += validate_labels(meta.get("labels"), "metadata.labels")
    annotations = meta.get("annotations")
    held = cast("dict[str, str]", annotations) if isinstance(annotations, dict) else {}
    for key in held:
        found += [invalid("metadata.annotations", key, why) for why in qualified_name(key.lower())]
    if sum(len(k) + len(v) for k, v in held.items()) > MAX_ANNOTATIONS:
        found.append(too_long("metadata.annotations", MAX_ANNOTATIONS))
    finalizers = meta.get("finalizers")
    for at, finalizer in enumerate(finalizers if isinstance(finalizers, list) else []):
        found += [invalid("metadata.finalizers", finalizer, why) for why in qualified_name(str(finalizer))]
        if "/" not in str(finalizer) and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(invalid(f"metadata.finalizers[{at}]", finalizer, why))
    return found


IMMUTABLE = "field is immutable"


def validate_metadata_update(new: Object, old: Object) -> list[Cause]:
    """What an update may not touch, and finalizers that come too late."""
    fresh, before = metadata(new), metadata(old)
    found: list[Cause] = []
    if before.get("deletionTimestamp"):
        known = before.get("finalizers")
        given = fresh.get("finalizers")
        added = [
            f for f in (given if isinstance(given, list) else []) if f not in (known if isinstance(known, list) else [])
        ]
        if added:
            names = ", ".join(f'"{name}"' for name in added)
            why = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{names}}}"
            )
            found.append(forbidden("metadata.finalizers", why))
    return found


def immutable(new: Json, old: Json, field: str) -> list[Cause]:
    """The field may not change."""
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


Rule = Callable[[Object, str], Iterator[Cause]]
"""What is wrong with an object, and where: the second argument is the object's own path."""
Check = Callable[[Json, str], Iterator[Cause]]
"""What is wrong with a value at a path."""


def at(path: str, name: str) -> str:
    """The path of a field."""
    return f"{path}.{name}" if path else name


def checked(obj: Object, path: str, *rules: Rule) -> Iterator[Cause]:
    """What each rule finds, in order."""
    for rule in rules:
        yield from rule(obj, path)


def field(name: str, *checks: Check, optional: bool = False) -> Rule:
    """Checks of one field; an `optional` one that is empty is left alone."""

    def rule(obj: Object, path: str) -> Iterator[Cause]:
        value = obj.get(name)
        if value or not optional:
            for check in checks:
                yield from check(value, at(path, name))

    return rule


def needed(name: str, why: str = "") -> Rule:
    """A field that must be there and not empty."""

    def rule(obj: Object, path: str) -> Iterator[Cause]:
        if not obj.get(name):
            yield required(at(path, name), why)

    return rule


def within(name: str, *rules: Rule) -> Rule:
    """Rules of a nested object, an absent one counting as empty; `a.b` names one deeper."""
    return lambda obj, path: checked(child(obj, *name.split(".")), at(path, name), *rules)


def each(name: str, *rules: Rule) -> Rule:
    """Rules of every item of a list."""

    def rule(obj: Object, path: str) -> Iterator[Cause]:
        for index, item in enumerate(objects(obj.get(name))):
            yield from checked(item, f"{at(path, name)}[{index}]", *rules)

    return rule


def distinct(name: str, key: str, *rules: Rule) -> Rule:
    """Rules of every item of a list, no two of which have the same key; `key` empty: at the path of the item."""

    def rule(obj: Object, path: str) -> Iterator[Cause]:
        seen: list[Json] = []
        for index, item in enumerate(objects(obj.get(name))):
            here = f"{at(path, name)}[{index}]"
            yield from checked(item, here, *rules)
            if item.get("name") in seen:
                yield duplicate(at(here, key) if key else here, item.get("name"))
            seen.append(item.get("name"))

    return rule


def one_of(*allowed: str, shown: tuple[str, ...] = ()) -> Check:
    """A value of a list; `shown` is the list where the real server prints another one."""

    def check(value: Json, path: str) -> Iterator[Cause]:
        if value not in allowed:
            yield unsupported(path, value, shown or allowed)

    return check


def named(rule: NameRule) -> Check:
    """A text that meets a rule for names."""

    def check(value: Json, path: str) -> Iterator[Cause]:
        for why in rule("" if value is None else str(value)):
            yield invalid(path, value, why)

    return check


def number(why: str, least: int, most: int | None = None, required: bool = False) -> Check:
    """A whole number within bounds; one that is absent is wrong only where it is `required`."""

    def check(value: Json, path: str) -> Iterator[Cause]:
        if isinstance(value, int):
            if value < least or (most is not None and value > most):
                yield invalid(path, value, why)
        elif required:
            yield invalid(path, value, why)

    return check
