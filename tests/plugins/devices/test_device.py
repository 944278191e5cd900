"""A selector's answer for a device that shares answers is that of an evaluation for this device alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.device_objects import Device, DeviceAttribute, DeviceCapacity
from policyengine.plugins.devices.device import Answer, Reading, SelectorError, SliceDevice

ATTRIBUTES = st.dictionaries(
    st.sampled_from(["a", "b", "gpu.example/a", "other/c"]),
    st.sampled_from(
        [
            DeviceAttribute(int_value=1),
            DeviceAttribute(bool_value=True),
            DeviceAttribute(string_value="x"),
            DeviceAttribute(version_value="1.2.3"),
            DeviceAttribute(version_value="none"),
            DeviceAttribute(),
        ]
    ),
)
OWN = "device.attributes['gpu.example']"
SELECTORS = (
    f"{OWN}.a == 1",
    f"has({OWN}.b) && {OWN}.b == 'x' || {OWN}.a == true",
    f"{OWN}.exists(name, {OWN}[name] == 1)",
    f"size({OWN}) > 1 && 'c' in device.attributes['other']",
    f"{OWN} == device.attributes['other']",
    "device.capacity['gpu.example'].memory.isGreaterThan(quantity('1Gi'))",
)


def device(attributes: dict[str, DeviceAttribute], memory: str = "2Gi") -> SliceDevice:
    made = Device(name="d", attributes=attributes, capacity={"memory": DeviceCapacity(value=memory)})
    return SliceDevice("gpu.example", "pool", made)


@given(st.lists(st.builds(device, ATTRIBUTES, st.sampled_from(["1Gi", "2Gi", "much"])), min_size=2, max_size=8))
def test_shared_answers_are_each_device_s_own(devices: list[SliceDevice]) -> None:
    for selector in SELECTORS:
        for one in devices:
            expected, _ = one._evaluated(selector, set())
            if isinstance(expected, bool):
                assert one.meets(selector, Reading()) is expected
            else:
                with pytest.raises(SelectorError) as raised:
                    one.meets(selector, Reading())
                assert str(raised.value) == expected


def test_a_selector_is_not_evaluated_again_where_all_that_it_read_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[str] = []
    evaluate = SliceDevice._evaluated

    def noted(one: SliceDevice, selector: str, read: set[str]) -> Answer:
        evaluated.append(selector)
        return evaluate(one, selector, read)

    monkeypatch.setattr(SliceDevice, "_evaluated", noted)
    selector = f"{OWN}.memory > 4"
    for number in range(20):
        uuid, memory = DeviceAttribute(string_value=f"u{number}"), DeviceAttribute(int_value=number % 2 * 8)
        assert device({"uuid": uuid, "memory": memory}).meets(selector, Reading()) is (number % 2 == 1)
    assert len(evaluated) == 2
