"""The schema: every path says what it is, and the table agrees with itself."""

import pytest

from policyengine.language.schema import OBJECTS, ROOTS, attribute, object_info, paths
from policyengine.language.types import Kind, Reach, Shape, Type


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


@pytest.mark.parametrize(
    ("path", "type_", "reach", "evictable"),
    [
        ("pod.requests.cpu", "cpu", Reach.POD, False),
        ("node.labels", "map(string, string)", Reach.NODE_FIXED, False),
        ("node.free.memory", "memory", Reach.NODE_CHANGING, True),
        ("node.podCount", "int", Reach.NODE_CHANGING, True),
        ("cluster.nodeCount", "int", Reach.CLUSTER, False),
        ("policy.hash", "string", Reach.CONSTANT, False),
        ("now", "timestamp", Reach.CLUSTER, False),
    ],
)
def test_a_path_has_type_reach_and_evictability(path: str, type_: str, reach: Reach, evictable: bool) -> None:
    known = attribute(tuple(path.split(".")))
    assert known is not None
    assert (str(known.type), known.reach, known.evictable) == (type_, reach, evictable)
    assert known.shape is (Shape.NODE if path.startswith("node.") else Shape.SCALAR)


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
