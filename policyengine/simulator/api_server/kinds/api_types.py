"""The types of the API, read from `schemas/*.txt`: one table for decoding, merging, field ownership and OpenAPI.

A schema file holds a type a paragraph: its name (`atomic`: owned and merged whole), then its fields, indented:

    name[?]#number type [flags]

`?` says the field is left out when empty; without it the field is always written, with its zero value. `#number` is
its protobuf field, `#2.1` one inside an inlined message. Types:
`string bool int32 int64 float bytes time microtime duration quantity intstr raw`, a struct's name (with its group
and version before a colon where it lies in another file), `*T` a pointer (absent and zero differ), `[]T`, `{}T`.
Flags: `map(k,..)` a list keyed by fields, `set`, `atomic` for server-side apply; `merge(k)`, `merge`, `retainKeys`
for strategic merge; `required`. The facts are those of the Go types of Kubernetes 1.36.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "schemas"
STRINGS = frozenset({"string", "bytes", "time", "microtime", "duration", "quantity"})
SCALARS = STRINGS | {"bool", "int32", "int64", "byte", "float", "intstr", "raw"}


@dataclass(frozen=True, slots=True)
class Type:
    """One type: `kind` is a scalar's name, `list`, `map` or `struct`; `ref` names the struct (`core/v1:PodSpec`)."""

    kind: str
    elem: "Type | None" = None
    ref: str = ""
    pointer: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, with how it merges and who may own its parts."""

    name: str
    type: Type
    omit: bool
    list_type: str = ""
    keys: tuple[str, ...] = ()
    strategies: frozenset[str] = frozenset()
    merge_key: str = ""
    required: bool = False
    number: tuple[int, ...] = ()

    @property
    def atomic(self) -> bool:
        """Whether the value is owned and replaced as a whole under server-side apply."""
        return self.list_type == "atomic" or (self.type.kind == "list" and not self.list_type)


@dataclass(slots=True)
class Struct:
    """A struct: `fields` by JSON name; `always` are those written even when empty."""

    ref: str
    fields: dict[str, Field]
    atomic: bool = False
    always: tuple[Field, ...] = field(default=())

    def __post_init__(self) -> None:
        self.always = tuple(f for f in self.fields.values() if not f.omit)

    @property
    def name(self) -> str:
        """The Go type's name."""
        return self.ref.rpartition(":")[2]


def file_name(group_version: str) -> str:
    """`coordination.k8s.io/v1` lies in `coordination_v1.txt`."""
    if group_version == "meta":
        return "meta.txt"
    group, _, version = group_version.partition("/")
    return f"{group.split('.')[0]}_{version}.txt"


def parse_type(text: str, home: str) -> Type:
    """A type in the notation above; bare struct names lie in `home`."""
    if text.startswith("*"):
        inner = parse_type(text[1:], home)
        return Type(inner.kind, inner.elem, inner.ref, pointer=True)
    if text.startswith("[]"):
        return Type("list", parse_type(text[2:], home))
    if text.startswith("{}"):
        return Type("map", parse_type(text[2:], home))
    if text in SCALARS:
        return Type("int32" if text == "byte" else text)
    return Type("struct", ref=text if ":" in text else f"{home}:{text}")


def _parse_field(line: str, home: str) -> Field:
    said, text, *flags = line.split()
    name, _, number = said.partition("#")
    found = Field(name.rstrip("?"), parse_type(text, home), name.endswith("?"))
    if number:
        found = replace(found, number=tuple(int(part) for part in number.split(".")))
    for flag in flags:
        word, _, inside = flag.rstrip(")").partition("(")
        if word == "required":
            found = replace(found, required=True)
        elif word in ("map", "set", "atomic"):
            found = replace(found, list_type=word, keys=tuple(filter(None, inside.split(","))))
        else:
            found = replace(found, strategies=found.strategies | frozenset(word.split("+")), merge_key=inside)
    return found


@cache
def load(group_version: str) -> dict[str, Struct]:
    """All structs of one file, by name; empty where there is no such file."""
    path = FOLDER / file_name(group_version)
    if not path.exists():
        return {}
    structs: dict[str, Struct] = {}
    name, atomic, fields = "", False, dict[str, Field]()
    for line in [*path.read_text(encoding="utf-8").splitlines(), "end"]:
        if line.startswith("#"):
            continue
        if line.startswith(" "):
            one = _parse_field(line, group_version)
            fields[one.name] = one
            continue
        if name:
            structs[name] = Struct(f"{group_version}:{name}", fields, atomic)
        name, _, rest = line.partition(" ")
        atomic, fields = rest == "atomic", {}
    return structs


@cache
def struct(ref: str) -> Struct:
    """The struct a reference names; raises KeyError for one that is not in the table."""
    group_version, _, name = ref.rpartition(":")
    return load(group_version)[name]
