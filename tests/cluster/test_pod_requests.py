"""Pod resource accounting, case by case from the KEPs the module names, and against a naive reading of them."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine import quantity
from policyengine.cluster.pod_info import PodInfo
from tests.builders import make_pod

GI = 2**30


def requests(builder):
    return builder.info().requests


def test_resources_the_scheduler_does_not_count_are_left_out():
    pod = make_pod().req({"foo": "1", "pods": "3", "vendor.io/x": "1", "kubernetes.io/y": "2", "requests.z/a": "1"})
    assert requests(pod.req({"attachable-volumes-csi": "1", "hugepages-1Gi": "0"})).scalars == {
        "vendor.io/x": 1,
        "kubernetes.io/y": 2,
        "attachable-volumes-csi": 1,
        "hugepages-1Gi": 0,
    }


@pytest.mark.parametrize(
    ("actual", "allocated", "expected"),
    [("500m", "500m", 1000), ("2", "1", 2000), ("1", "3", 3000), ("1", None, 1000), ("1", "1", 1000)],
)
def test_during_a_resize_the_largest_of_desired_actual_and_allocated_counts(actual, allocated, expected):
    status = {"requests": {"cpu": actual}, "allocated": {"cpu": allocated} if allocated else None}
    assert requests(make_pod().req(cpu="1").container_status(**status)).cpu == expected


def test_an_infeasible_resize_leaves_the_desired_amount_out():
    pod = make_pod().req(cpu="8").container_status(requests={"cpu": "1"}, allocated={"cpu": "2"})
    assert requests(pod).cpu == 8000
    assert requests(pod.condition("PodResizePending", "True", "Infeasible")).cpu == 2000
    deferred = make_pod().req(cpu="8").container_status(requests={"cpu": "1"}, allocated={"cpu": "2"})
    assert requests(deferred.condition("PodResizePending", "True", "Deferred")).cpu == 8000


def test_allocated_without_actual_resources_is_not_read():
    assert requests(make_pod().req(cpu="1").container_status(allocated={"cpu": "9"})).cpu == 1000


def test_a_plain_init_container_is_not_resized_but_a_sidecar_is():
    plain = make_pod().init(name="i", cpu="1").container_status("i", requests={"cpu": "5"}, init=True)
    assert requests(plain).cpu == 1000
    sidecar = make_pod().init(name="i", sidecar=True, cpu="1").container_status("i", requests={"cpu": "5"}, init=True)
    assert requests(sidecar).cpu == 5000


def test_pod_level_requests_are_resized_too():
    pod = make_pod().pod_level({"cpu": "1"}).set("status.resources", {"requests": {"cpu": "2"}})
    assert requests(pod.set("status.allocatedResources", {"cpu": "3"})).cpu == 3000


def test_containers_without_a_request_count_for_scoring():
    info = make_pod().req(cpu="1").container().container(memory="0").info()
    assert info.shape.nonzero_cpu == 1000 + 100 + 100
    assert info.shape.nonzero_memory == 2 * 200 * 2**20
    assert info.requests.memory == 0


def test_a_pod_level_request_leaves_no_default_for_its_resource():
    shape = make_pod().container().pod_level({"cpu": "2"}).info().shape
    assert (shape.nonzero_cpu, shape.nonzero_memory) == (2000, 2 * 200 * 2**20)
    assert make_pod().pod_level({"vendor.io/x": "1"}).info().shape.nonzero_cpu == 100


def test_limits_add_up_and_overhead_counts_where_a_limit_is():
    limits = make_pod().limit(cpu="1").container().overhead(cpu="1", memory="1Gi").info().shape.limits
    assert (limits.cpu, limits.memory) == (2000, 0)


@pytest.mark.parametrize("amount", ["lots", "-1", "", "1e99"])
def test_an_amount_that_cannot_be_counted_refuses_the_pod_and_leaves_the_rest(amount):
    info = make_pod().req(cpu=amount, memory="1Gi").info()
    assert info.problem is not None
    assert "`cpu`" in info.problem
    assert info.requests.memory == GI


@pytest.mark.parametrize(
    ("pod", "qos"),
    [
        (make_pod(), "BestEffort"),
        (make_pod().req(cpu="0"), "BestEffort"),
        (make_pod().req({"vendor.io/x": "1"}), "BestEffort"),
        (make_pod().req(cpu="1"), "Burstable"),
        (make_pod().req(cpu="1").limit(cpu="1"), "Burstable"),
        (make_pod().req(cpu="1", memory="1Gi").limit(cpu="1000m", memory="1024Mi"), "Guaranteed"),
        (make_pod().req(cpu="1", memory="1Gi").limit(cpu="2", memory="1Gi"), "Burstable"),
        (make_pod().req(cpu="1", memory="1Gi").limit(cpu="1", memory="1Gi").container(), "Burstable"),
        (make_pod().req(cpu="1", memory="1Gi").limit(cpu="1", memory="1Gi").init(), "Burstable"),
        (make_pod().pod_level({"cpu": "1", "memory": "1"}, {"cpu": "1", "memory": "1"}), "Guaranteed"),
        (make_pod().req(cpu="1").pod_level({"cpu": "1"}), "Burstable"),
    ],
)
def test_quality_of_service(pod, qos):
    assert pod.info().shape.qos == qos


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "vendor.io/x", "hugepages-2Mi"]),
    st.sampled_from(["0", "1", "250m", "0.3m", "1Ki", "3", "1500m"]),
    max_size=4,
)
containers = st.lists(amounts, min_size=1, max_size=3)
inits = st.lists(st.tuples(st.booleans(), amounts), max_size=4)


def naive(container_requests, init_requests, overhead, pod_level):
    """KEP-753's sentence for each resource: the most that runs at any one time."""
    names = {name for asked in container_requests for name in asked}
    names |= {name for _, asked in init_requests for name in asked} | set(overhead) | set(pod_level or {})
    total = {}
    for name in names:
        moments = []
        running = Fraction(0)
        for is_sidecar, asked in init_requests:
            amount = quantity.parse(asked.get(name, "0"))
            moments.append(running + amount)
            running += amount if is_sidecar else 0
        moments.append(running + sum(quantity.parse(asked.get(name, "0")) for asked in container_requests))
        most = max(moments)
        if pod_level and name in pod_level and (name in ("cpu", "memory") or name.startswith("hugepages")):
            most = quantity.parse(pod_level[name])
        most += quantity.parse(overhead.get(name, "0"))
        total[name] = ceil(most * 1000) if name == "cpu" else ceil(most)
    return {name: amount for name, amount in total.items() if amount}


@given(containers, inits, amounts, st.none() | amounts)
def test_accounting_agrees_with_the_naive_definition(container_requests, init_requests, overhead, pod_level):
    pod = make_pod().req(container_requests[0])
    for asked in container_requests[1:]:
        pod.container().req(asked)
    for is_sidecar, asked in init_requests:
        pod.init(asked, sidecar=is_sidecar)
    pod.set("spec.overhead", overhead)
    if pod_level is not None:
        pod.pod_level(pod_level)
    got = {name: amount for name, amount in PodInfo(pod.build()).requests.items() if amount}
    expected = naive(container_requests, init_requests, overhead, pod_level)
    assert got == expected
