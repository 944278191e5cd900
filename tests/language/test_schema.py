"""The schema: every path says what it is, and the table agrees with itself."""

from policyengine.language.schema import OBJECTS, ROOTS, attribute, object_info, paths
from policyengine.language.types import Kind, Type


def types_within(type_: Type) -> list[Type]:
    return [type_, *(inner for arg in type_.args for inner in types_within(arg))]


def test_every_object_that_a_field_has_is_in_the_table() -> None:
    fields = [field for info in OBJECTS.values() for field in info.fields.values()]
    for known in (*fields, *ROOTS.values()):
        for type_ in types_within(known.type):
            assert type_.kind is not Kind.OBJECT or object_info(type_) is not None, known.name


def test_every_field_has_a_line_of_documentation() -> None:
    for info in OBJECTS.values():
        assert info.doc
        assert all(field.doc for field in info.fields.values())


def test_what_is_no_path_has_no_attribute() -> None:
    assert attribute(("pod", "nothing")) is None
    assert attribute(("pod", "labels", "x")) is None
    assert attribute(("nothing",)) is None


def test_what_reads_a_node_waits_for_nodes() -> None:
    for path, known in paths():
        if path[0] == "node":
            assert "node.add" in known.changes, path
            freed = {"assignedPod.delete", "finishedPod.add", "unscheduledPod.nominated"} & set(known.changes)
            assert bool(freed) == known.evictable, path
