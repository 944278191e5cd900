"""The slices of a cluster: which are local to a node, which belong to a pool, which look alike."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.device_objects import ResourceSlice
from policyengine.cluster.device_slices import DeviceSlice, DeviceSlices
from tests.plugins.devices.devices import device, gpus, resource_slice


def only(*sources: ResourceSlice) -> DeviceSlice:
    slices = DeviceSlices()
    for source in sources:
        slices.observe(source)
    (one,) = slices.local("n0").values()
    return one


def gpu(name: str, **more: Any) -> Any:
    return device(name, "40Gi", **{"uuid": f"uuid of {name}", "model": "big", **more})


def test_slices_look_alike_where_devices_differ_in_names_and_in_what_nobody_read() -> None:
    one, other = only(gpus(gpu("a"), gpu("b"))), only(gpus(gpu("c"), gpu("d"), pool="x"))
    assert one.shape == other.shape
    assert one.look(("model",)) == other.look(("model",))
    assert one.look(("uuid",)) != other.look(("uuid",))


def test_slices_do_not_look_alike_where_anything_else_differs() -> None:
    one = only(gpus(gpu("a")))
    taint = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    different = [
        gpus(gpu("a"), gpu("b")),
        gpus(device("a", "80Gi", uuid="u", model="big")),
        gpus({**gpu("a"), **taint}),
        gpus({**gpu("a"), "bindingConditions": ["ready"]}),
        gpus({**gpu("a"), "allowMultipleAllocations": True}),
        gpus(gpu("a", index=3)),
        gpus(gpu("a"), driver="other.example"),
    ]
    assert all(only(other).shape != one.shape for other in different)
    assert only(gpus(gpu("a", model="small"))).shape == one.shape
    assert only(gpus(gpu("a", model="small"))).look(("model",)) != one.look(("model",))


def test_a_look_is_all_there_is_to_see_only_of_a_whole_pool_of_one_node() -> None:
    draws = {"consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": 1}}}]}
    assert only(gpus(gpu("a"))).is_plain
    assert not only(gpus(gpu("a"), count=2)).is_plain
    assert not only(gpus(gpu("a"), gpu("a"))).is_plain
    assert not only(gpus({**gpu("a"), **draws})).is_plain


changes = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(("n0", "n1", "", "gone")), st.sampled_from(("p", "q"))),
    max_size=12,
)


@given(changes)
def test_what_is_kept_is_what_would_be_made_of_the_slices_there_are(history: list[tuple[str, str, str]]) -> None:
    slices, there = DeviceSlices(), dict[str, ResourceSlice]()
    for name, node, pool in history:
        if node == "gone":
            slices.drop(name)
            there.pop(name, None)
        else:
            there[name] = resource_slice("g", node=node or None, pool=pool, name=name)
            slices.observe(there[name])
        for here in ("n0", "n1"):
            local = {name for name, one in there.items() if one.spec.node_name == here}
            assert set(slices.local(here)) == local
        assert {one.name for one in slices.shared} == {name for name, one in there.items() if not one.spec.node_name}
        for one in [*slices.shared, *slices.local("n0").values()]:
            mates = {name for name, source in there.items() if source.spec.pool.name == one.pool[1]}
            assert one.source is there[one.name] and set(one.members) == mates
