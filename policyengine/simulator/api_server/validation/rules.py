"""What an object must be beyond its metadata, by the table `kinds/schemas/rules.txt`; and what an update may change.

The refusals are those that clients of this server run into; a kind that the table does not name is taken as it is.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial

from policyengine.simulator.api_server import field_errors as errors
from policyengine.simulator.api_server.kinds.api_types import FOLDER
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage import Object, child, metadata, objects
from policyengine.simulator.api_server.validation.checks import CHECKS, Checks

Check = Callable[[Json, str], Iterator[Cause]]
"""What is wrong with a value at a path."""
Rule = tuple[tuple[str, ...], Check]
"""Where a value lies, `[]` standing for every item of a list, and what it must be."""
NAMES = {"label": errors.dns_label, "subdomain": errors.subdomain, "qualified": errors.qualified_name}
EVENT_TEXT = 1024
UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
    "be set to 1 if it was previously negative)"
)


def validate(kind: str, new: Object, old: Object | None) -> Iterator[Cause]:
    """What is wrong with an object, given the one before (None: it is new)."""
    yield from _part(kind, new, "")
    if kind == "Event" and old is None:
        yield from _event(new)
    elif kind == "Pod" and old is not None and child(new, "spec") != child(old, "spec"):
        yield from _changes(child(new, "spec"), child(old, "spec"))
    elif kind in ("RoleBinding", "ClusterRoleBinding") and old is not None and old["roleRef"] != new["roleRef"]:
        reference = child(new, "roleRef")
        shown: Json = {"APIGroup": reference["apiGroup"], "Kind": reference["kind"], "Name": reference["name"]}
        yield errors.invalid("roleRef", shown, "cannot change roleRef")


# The table


@cache
def _rules() -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    part = ""
    for line in (FOLDER / "rules.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            path, check, said = (line.strip() + "||").split("|")[:3]
            if path.startswith("= "):
                _, name, path = path.split()
                found[part].append((_steps(path), partial(_part, name)))
            else:
                found[part].append((_steps(path), _check(check.split(), said)))
        elif not line.startswith("#"):
            part = line
            found[part] = []
    return found


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step for step in path.replace("[]", ".[]").split(".") if step)


def _check(words: list[str], said: str) -> Check:
    """A check as a line of the table says it."""
    name, arguments = words[0].rstrip("?"), words[1:]

    def check(value: Json, path: str) -> Iterator[Cause]:
        if words[0].endswith("?") and value in (None, ""):
            return iter(())
        if name in PLAIN:
            return PLAIN[name](value, path, *arguments, said=said)
        return CHECKS[name](value, path, *arguments)

    return check


def _part(part: str, value: Json, path: str) -> Iterator[Cause]:
    """What is wrong with an object, or a part of one, by the rules of `part`."""
    for steps, check in _rules().get(part, ()):
        for found, where in _at(value, steps, path):
            yield from check(found, where)


def _at(value: Json, steps: tuple[str, ...], path: str) -> Iterator[tuple[Json, str]]:
    """The values at a path, each with its own."""
    if not steps:
        yield value, path
    elif steps[0] == "[]":
        for index, item in enumerate(objects(value)):
            yield from _at(item, steps[1:], f"{path}[{index}]")
    else:
        held = value.get(steps[0]) if isinstance(value, dict) else None
        yield from _at(held, steps[1:], f"{path}.{steps[0]}" if path else steps[0])


def _needed(value: Json, path: str, said: str) -> Iterator[Cause]:
    if not value:
        yield errors.required(path, said)


def _in(value: Json, path: str, *allowed: str, said: str) -> Iterator[Cause]:
    if value not in allowed:
        yield errors.unsupported(path, value, tuple(said.split()) or allowed)


def _from(value: Json, path: str, least: str, most: str = "", *, said: str) -> Iterator[Cause]:
    if not isinstance(value, int) or value < int(least) or (most and value > int(most)):
        yield errors.invalid(path, value, said)


def _name(value: Json, path: str, syntax: str, *, said: str) -> Iterator[Cause]:
    for why in NAMES[syntax]("" if value is None else str(value)):
        yield errors.invalid(path, value, why)


def distinct(value: Json, path: str, key: str = "", *, said: str = "") -> Iterator[Cause]:
    """Items of one name, told at the `key`, or at the item where it is empty."""
    seen: set[str] = set()
    for index, item in enumerate(objects(value)):
        name = str(item.get("name") or "")
        if name in seen:
            yield errors.duplicate(f"{path}[{index}]" + (f".{key}" if key else ""), item.get("name"))
        seen.add(name)


PLAIN: Checks = {"needed": _needed, "in": _in, "from": _from, "name": _name, "distinct": distinct}
"""What is said of them where they fail stands in the table."""


# Events and updates


def _event(new: Object) -> Iterator[Cause]:
    """The rules of new-style events (those with an eventTime); the old style is taken as it is."""
    place, home = metadata(new).get("namespace"), child(new, "involvedObject").get("namespace") or ""
    if place != home if home else place not in ("default", "kube-system"):
        yield errors.invalid("involvedObject.namespace", home, "does not match event.namespace")
    if not new.get("eventTime"):
        return
    for name, at, limit in (
        ("reportingComponent", "reportingController", 0),
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
    ):
        text = str(new.get(name) or "")
        if not text:
            yield errors.required(at)
        elif limit and len(text) > limit:
            yield errors.invalid(at, "", f"can have at most {limit} characters")
        if name == "reportingComponent":
            yield from (errors.invalid(at, text, why) for why in errors.qualified_name(text))
    if len(str(new.get("message") or "")) > EVENT_TEXT:
        yield errors.invalid("message", "", f"can have at most {EVENT_TEXT} characters")
    if new.get("type") not in ("Normal", "Warning"):
        yield errors.invalid("type", "", "has invalid value: " + str(new.get("type") or ""))


def _changes(fresh: Object, before: Object) -> Iterator[Cause]:
    groups = {name: (objects(fresh.get(name)), objects(before.get(name))) for name in ("containers", "initContainers")}
    for name, (now, then) in groups.items():
        if len(now) != len(then):
            yield errors.forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _only_added_tolerations(fresh, before)
    yield from _only_removed_gates(fresh, before)
    allowed = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    if before.get("schedulingGates"):
        allowed += ["nodeSelector", "affinity"]
    kept = {name: value for name, value in fresh.items() if name not in allowed}
    kept |= {name: before[name] for name in allowed if name in before}
    for name, (now, then) in groups.items():
        if now:
            kept[name] = [{**one, "image": held.get("image")} for one, held in zip(now, then, strict=True)]
    if kept != before:
        names = sorted(name for name in {*kept, *before} if kept.get(name) != before.get(name))
        why = f"pod updates may not change fields other than {UPDATABLE}\n changed: {', '.join(names)}"
        yield errors.forbidden("spec", why)


def _only_added_tolerations(fresh: Object, before: Object) -> Iterator[Cause]:
    def bare(spec: Object) -> set[tuple[str, ...]]:
        fields = ("key", "operator", "value", "effect")
        return {tuple(str(one.get(name) or "") for name in fields) for one in objects(spec.get("tolerations"))}

    if bare(before) - bare(fresh):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield errors.forbidden("spec.tolerations", why)


def _only_removed_gates(fresh: Object, before: Object) -> Iterator[Cause]:
    known = {str(gate.get("name")) for gate in objects(before.get("schedulingGates"))}
    names = [str(gate.get("name")) for gate in objects(fresh.get("schedulingGates"))]
    added = [name for name in names if name not in known]
    for at, name in enumerate(added):
        why = f"only deletion is allowed, but found new scheduling gate '{name}'"
        yield errors.forbidden(f"spec.schedulingGates[{at}].name", why)
