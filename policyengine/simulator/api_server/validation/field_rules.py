"""What every object's metadata must be, and the rules for everything else, as small functions that are put together.

A rule takes an object and its path, and yields what is wrong with it. Worked example: a toleration's effect may be
left out, and otherwise is one of three, at `spec.tolerations[1].effect`:

    each("tolerations", field("effect", one_of("NoSchedule", "PreferNoSchedule", "NoExecute"), optional=True))
"""

import re
from collections.abc import Callable, Iterator
from typing import cast

from policyengine.simulator.api_server import field_errors as errors
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage import Object, child, metadata, objects

STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
MAX_ANNOTATIONS = 256 * 1024
LABEL_NAMED = frozenset({"Namespace", "LimitRange", "Service"})
PATH_NAMED = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})


def name_rule(kind: str) -> errors.NameRule:
    """How objects of a kind may be called."""
    if kind in LABEL_NAMED:
        return errors.dns_label
    return errors.path_segment if kind in PATH_NAMED else errors.subdomain


def validate_metadata(obj: Object, kind: str, namespaced: bool) -> list[Cause]:
    """A new or changed object's metadata."""
    meta = metadata(obj)
    rule, found = name_rule(kind), list[Cause]()
    base, name = str(meta.get("generateName") or ""), str(meta.get("name") or "")
    if base:
        # A generated name continues, so a dash may end the base; a dot would leave an empty part.
        found += [errors.invalid("metadata.generateName", base, why) for why in rule(re.sub(r"-$", "a", base))]
    if not name:
        found.append(errors.required("metadata.name", "name or generateName is required"))
    elif kind != "Event" or not base or not found:
        found += [errors.invalid("metadata.name", name, why) for why in rule(name)]
    if namespaced and not meta.get("namespace"):
        found.append(errors.required("metadata.namespace"))
    found += errors.validate_labels(meta.get("labels"), "metadata.labels")
    annotations = meta.get("annotations")
    held = cast("dict[str, str]", annotations) if isinstance(annotations, dict) else {}
    for key in held:
        found += [errors.invalid("metadata.annotations", key, why) for why in errors.qualified_name(key.lower())]
    if sum(len(k) + len(v) for k, v in held.items()) > MAX_ANNOTATIONS:
        found.append(errors.too_long("metadata.annotations", MAX_ANNOTATIONS))
    finalizers = meta.get("finalizers")
    for at, finalizer in enumerate(finalizers if isinstance(finalizers, list) else []):
        text = str(finalizer)
        found += [errors.invalid("metadata.finalizers", text, why) for why in errors.qualified_name(text)]
        if "/" not in text and text not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(errors.invalid(f"metadata.finalizers[{at}]", finalizer, why))
    return found


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
            found.append(errors.forbidden("metadata.finalizers", why))
    return found


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
            yield errors.required(at(path, name), why)

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
        seen: set[str] = set()
        for index, item in enumerate(objects(obj.get(name))):
            here = f"{at(path, name)}[{index}]"
            yield from checked(item, here, *rules)
            called = str(item.get("name") or "")
            if called in seen:
                yield errors.duplicate(at(here, key) if key else here, item.get("name"))
            seen.add(called)

    return rule


def one_of(*allowed: str, shown: tuple[str, ...] = ()) -> Check:
    """A value of a list; `shown` is the list where the real server prints another one."""

    def check(value: Json, path: str) -> Iterator[Cause]:
        if value not in allowed:
            yield errors.unsupported(path, value, shown or allowed)

    return check


def named(rule: errors.NameRule) -> Check:
    """A text that meets a rule for names."""

    def check(value: Json, path: str) -> Iterator[Cause]:
        for why in rule("" if value is None else str(value)):
            yield errors.invalid(path, value, why)

    return check


def number(why: str, least: int, most: int | None = None, required: bool = False) -> Check:
    """A whole number within bounds; one that is absent is wrong only where it is `required`."""

    def check(value: Json, path: str) -> Iterator[Cause]:
        if isinstance(value, int):
            if value < least or (most is not None and value > most):
                yield errors.invalid(path, value, why)
        elif required:
            yield errors.invalid(path, value, why)

    return check
