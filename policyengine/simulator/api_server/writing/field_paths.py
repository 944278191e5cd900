"""Field paths: which fields an object holds, which changed, and FieldsV1, the form managedFields writes them in.

A path is a tuple of FieldsV1 steps: `f:name` a field or map key, `k:{...}` a list item by its keys, `v:...` an item of
a set. Sets of paths are plain frozensets. Rules as in sigs.k8s.io/structured-merge-diff: atomic values and leaves are
members by themselves; a keyed list's items are members besides what is in them; an empty container is a leaf.
"""

from collections.abc import Iterable, Iterator

from policyengine.simulator.api_server.kinds.api_types import Field, Type, struct
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import decode, encode

Path = tuple[str, ...]


def plain(type_: Type) -> Field:
    """A value of a type that says nothing of how it is owned: an item, an object as a whole."""
    return Field("", type_, omit=True)


RAW = plain(Type("raw"))
# A custom resource's value, walked by what is there: objects by key, lists whole.
TREE = plain(Type("tree"))


def key_step(item: Json, keys: Iterable[str]) -> str:
    """The step of a keyed list's item."""
    held = item if isinstance(item, dict) else {}
    found = {k: held[k] for k in sorted(keys) if held.get(k) is not None}
    return "k:" + encode(found).decode()


def children(value: Json, shape: Field) -> list[tuple[str, Json, Field]] | None:
    """The parts of a value by step, or None where it is a leaf (or empty, or owned whole)."""
    type_ = shape.type
    if shape.atomic or not value:
        return None
    if type_.kind == "struct" and isinstance(value, dict):
        known = struct(type_.ref)
        if known.atomic:
            return None
        return [(f"f:{k}", v, known.fields.get(k, RAW)) for k, v in value.items()]
    if type_.kind == "map" and isinstance(value, dict) and type_.elem:
        return [(f"f:{k}", v, plain(type_.elem)) for k, v in value.items()]
    if type_.kind == "tree" and isinstance(value, dict):
        return [(f"f:{k}", v, TREE) for k, v in value.items()]
    if type_.kind == "list" and isinstance(value, list) and type_.elem:
        if shape.keys:
            return [(key_step(item, shape.keys), item, plain(type_.elem)) for item in value]
        if shape.list_type == "set":
            return [("v:" + encode(item).decode(), item, RAW) for item in value]
    return None


def mistyped(value: Json, shape: Field, path: str = "") -> str:
    """What keeps an applied configuration from its type: a container of another type, or a list key twice."""
    type_ = shape.type
    wanted = {"struct": "map", "map": "map", "list": "list"}.get(type_.kind)
    if value is None or wanted is None:
        return ""
    if not isinstance(value, dict if wanted == "map" else list):
        return f"{path}: expected {wanted}, got &{{{_go(value)}}}"
    parts = children(value, shape) or []
    if shape.keys or shape.list_type == "set":
        seen: set[str] = set()
        for step, _, _ in parts:
            if step in seen:
                return f"{path}: duplicate entries for key {text((step,))}"
            seen.add(step)
    return next((wrong for s, part, inner in parts if (wrong := mistyped(part, inner, path + text((s,))))), "")


def _go(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def held(value: Json, shape: Field, path: Path = ()) -> Iterator[Path]:
    """All paths an applied configuration names: leaves, and the items of keyed lists."""
    parts = children(value, shape)
    if parts is None:
        if path:
            yield path
        return
    for step, part, inner in parts:
        if step.startswith("k:"):
            yield (*path, step)
        yield from held(part, inner, (*path, step))


def everything(value: Json, shape: Field, path: Path) -> Iterator[Path]:
    """All paths in a value, containers included: what an update adds that was not there."""
    yield path
    for step, part, inner in children(value, shape) or ():
        yield from everything(part, inner, (*path, step))


def compare(old: Json, new: Json, shape: Field, path: Path = ()) -> tuple[set[Path], set[Path]]:
    """What leads from `old` to `new`, both of `shape`: paths set to something new, and paths that are gone."""
    changed: set[Path] = set()
    removed: set[Path] = set()
    if old == new:
        return changed, removed
    before, after = children(old, shape), children(new, shape)
    if after is None:
        changed.add(path)
    old_parts = {step: part for step, part, _ in before or ()}
    new_parts = {step: (part, inner) for step, part, inner in after or ()}
    for step, (part, inner) in new_parts.items():
        if step in old_parts:
            below = compare(old_parts[step], part, inner, (*path, step))
            changed |= below[0]
            removed |= below[1]
        else:
            changed.update(everything(part, inner, (*path, step)))
    for step, part, inner in before or ():
        if step not in new_parts:
            removed.update(everything(part, inner, (*path, step)))
    return changed, removed


def to_fields_v1(paths: Iterable[Path]) -> dict[str, Json]:
    """FieldsV1 of a set of paths."""
    tree: dict[str, Json] = {}
    for path in sorted(set(paths)):
        node = tree
        for step in path:
            below = node.get(step)
            if not isinstance(below, dict):
                below = node[step] = {}
            elif not below:  # what ends there stands before what lies below it
                below["."] = {}
            node = below
    return tree


def from_fields_v1(tree: Json, path: Path = ()) -> Iterator[Path]:
    """The paths FieldsV1 says."""
    if not isinstance(tree, dict):
        return
    if not tree and path:
        yield path
    for step, below in tree.items():
        if step == ".":
            yield path
        else:
            yield from from_fields_v1(below, (*path, step))


def text(path: Path) -> str:
    """A path as conflicts print it: `.spec.containers[name="c"].image`."""
    out = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            out += "." + rest
        elif kind == "v":
            out += f"[={rest}]"
        else:
            keys = decode(rest.encode()).items()
            out += "[" + ",".join(f"{name}={encode(value).decode()}" for name, value in keys) + "]"
    return out
