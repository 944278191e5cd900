import json
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.kinds import STRUCTS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import ObjectError, decode, parse_time
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.storage_objects import PersistentVolume
from policyengine.cluster.workload_objects import Service
from policyengine.server.extender.wire import ExtenderPreemptionArgs
from tests.builders import make_node, make_pod
from tests.shared_facts import shared


def test_json_text_and_parsed_json_decode_alike():
    builder = make_pod("p").req(cpu="1").label("a", "b").toleration("k", "Exists").host_port(80)
    assert decode(Pod, msgspec.json.encode(builder.json())) == builder.build()


def test_unknown_fields_are_ignored():
    pod = make_pod().set("spec.somethingNew", {"deep": [1]}).set("metadata.managedFields", [{}]).build()
    assert pod == make_pod().build()


def test_null_counts_as_absent_wherever_it_stands():
    pod = make_pod().set("spec.tolerations", None).set("metadata.labels", None).set("spec.priority", None)
    assert pod.build() == make_pod().build()
    text = msgspec.json.encode(pod.json())
    assert decode(Pod, text) == make_pod().build()


def test_names_go_in_the_api_s_own_spelling():
    pod = make_pod().host_port(80, "UDP", "10.0.0.1").pod_anti_affinity("zone", {"a": "b"}).build()
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.pod_anti_affinity is not None
    required = pod.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    assert required[0].topology_key == "zone"
    volume = make_pod().volume("v", awsElasticBlockStore={"volumeID": "x"}).build().spec.volumes[0]
    assert volume.aws_elastic_block_store is not None
    assert volume.aws_elastic_block_store.volume_id == "x"


def bounds(kind: object) -> Iterator[tuple[int | None, int | None]]:
    """The bounds of every integer in a type of msgspec's, at any depth."""
    if isinstance(kind, msgspec.inspect.IntType):
        yield kind.ge, kind.le
    elif isinstance(kind, msgspec.inspect.Type | msgspec.inspect.Field):
        for name in kind.__struct_fields__:
            yield from bounds(getattr(kind, name))
    elif isinstance(kind, tuple):
        for one in kind:
            yield from bounds(one)


def test_no_integer_of_any_kind_is_larger_than_64_bits():
    found = list(bounds(tuple(map(msgspec.inspect.type_info, [*STRUCTS.values(), ExtenderPreemptionArgs]))))
    assert len(found) > 30 and set(found) == {(-(2**63), 2**63 - 1)}


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_a_larger_one_is_an_error_that_names_its_field_from_python_and_from_json(number: int):
    for field in ("spec.priority", "spec.containers"):
        requests = [{"name": "c", "resources": {"requests": {"memory": number}}}]
        pod = make_pod("p").set(field, number if field == "spec.priority" else requests).json()
        for raw in (pod, json.dumps(pod).encode()):
            with pytest.raises(ObjectError, match=f"Pod `default/p`: field `{field}.*expected `int`"):
                decode(Pod, raw)


@pytest.mark.parametrize(
    ("builder", "words"),
    [
        (make_pod("p").set("spec.containers", "none"), ["Pod `default/p`", "`spec.containers`"]),
        (make_pod("p").set("metadata.labels", {"a": 1}), ["Pod `default/p`", "`metadata.labels", "expected `str`"]),
        (make_node("n").set("spec.taints", {}), ["Node `n`", "`spec.taints`"]),
        (make_node("n").set("spec.unschedulable", "yes"), ["Node `n`", "`spec.unschedulable`", "expected `bool`"]),
    ],
)
def test_a_field_of_the_wrong_type_is_named(builder, words):
    with pytest.raises(ObjectError) as caught:
        builder.build()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"spec": {}}', b'"x"', b"[" * 10000])
def test_what_is_no_object_is_refused_in_one_sentence(raw):
    with pytest.raises(ObjectError, match="a Pod"):
        decode(Pod, raw)


def test_a_malformed_quantity_does_not_hide_its_pod():
    assert make_pod().req(cpu="lots").build().spec.containers[0].resources.requests == {"cpu": "lots"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50)
@given(
    st.sampled_from(["spec", "status", "metadata", "spec.containers", "spec.affinity", "status.conditions"]),
    json_values,
)
def test_any_json_in_any_place_decodes_or_is_refused(path, value):
    if path == "metadata" and not isinstance(value, dict):
        value = {"name": value}
    builder = make_pod("p").set(path, value)
    for kind in (Pod, Node, PersistentVolume, Service):
        try:
            decode(kind, builder.json())
        except ObjectError as error:
            assert str(error).endswith("correct the object")


@pytest.mark.parametrize("kind", STRUCTS.values(), ids=lambda kind: kind.__name__)
def test_every_kind_decodes_from_a_bare_name(kind):
    assert decode(kind, {"metadata": {"name": "x"}}).metadata.name == "x"


def test_times_are_seconds_since_the_epoch():
    assert parse_time("1970-01-01T00:00:01Z") == 1.0
    assert parse_time("1970-01-01T00:00:01.500000Z") == 1.5
    assert parse_time("1970-01-01T01:00:00+01:00") == 0.0
    assert parse_time(None) is None
    assert parse_time("") is None
    with pytest.raises(ObjectError, match="`yesterday` is not a time"):
        parse_time("yesterday")


def objects_in(value):
    """Every object of a kind we decode, however deep in the recording, items of lists included."""
    if isinstance(value, dict):
        kind = value.get("kind", "")
        if kind in STRUCTS and isinstance(value.get("metadata"), dict) and value["metadata"].get("name"):
            yield kind, value
        if kind.endswith("List") and kind.removesuffix("List") in STRUCTS:
            yield from ((kind.removesuffix("List"), item) for item in value.get("items") or ())
        for inner in value.values():
            yield from objects_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects_in(inner)


def test_what_a_real_api_server_sends_decodes():
    found = list(objects_in(json.loads(shared("recorded/apiserver-1.36.json").read_text())))
    assert {"Pod", "Node"} <= {kind for kind, _ in found}
    for kind, item in found:
        decoded = decode(STRUCTS[kind], item)
        assert decoded == decode(STRUCTS[kind], json.dumps(item).encode())
        assert decoded.metadata.name == item["metadata"]["name"]
