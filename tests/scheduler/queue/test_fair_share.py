"""Tenants are served by dominant share: the least first, each in the queue's order, never by sorting anew."""

from __future__ import annotations

from time import process_time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.view import ClusterView
from policyengine.framework.profile import FairShare
from policyengine.scheduler.queue.fair_share import FairPods
from policyengine.scheduler.queue.queued_pods import QueuedPod
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.cluster.consistency import validate_view
from tests.scheduler.driver import Driver, binds
from tests.scheduler.policy_members import driven

FAIR = "queue { fair by pod.namespace }"


def node(name: str, cpu: str = "4", pods: str = "110") -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods=pods)


def of(tenant: str, name: str, **requests: str) -> PodBuilder:
    return make_pod(name, tenant).req(**(requests or {"cpu": "1"}))


def served(driver: Driver) -> list[str]:
    """The tenants in the order in which their pods are bound."""
    return [driver.state.view.pods[uid].namespace for uid in binds(driver.cycle())]


def test_tenants_take_turns_whoever_came_first() -> None:
    driver = driven(FAIR)
    driver.see(node("n1", cpu="20"), *(of("a", f"a{i}") for i in range(4)), *(of("b", f"b{i}") for i in range(2)))
    assert served(driver) == ["a", "b", "a", "b", "a", "a"]


def test_a_tenant_with_twice_the_weight_gets_twice_as_much() -> None:
    driver = driven('queue { fair by pod.namespace weight {"a": 2} }')
    driver.see(node("n1", cpu="20"), *(of("a", f"a{i}") for i in range(6)), *(of("b", f"b{i}") for i in range(6)))
    assert served(driver)[:9].count("a") == 6


def test_the_dominant_resource_counts() -> None:
    driver = driven(FAIR)
    driver.see(node("n1", cpu="10"))  # and 8Gi
    # A pod of `a` takes a tenth of the cpu, one of `b` a quarter of the memory.
    driver.see(*(of("a", f"a{i}", cpu="1") for i in range(4)), *(of("b", f"b{i}", memory="2Gi") for i in range(2)))
    assert served(driver) == ["a", "b", "a", "a", "b", "a"]


def test_within_a_tenant_the_order_of_the_queue_holds() -> None:
    driver = driven("queue { fair by pod.namespace order by pod.priority desc }")
    driver.see(node("n1"), of("a", "low"), of("a", "high").priority(5), of("b", "other").priority(1))
    assert list(binds(driver.cycle())) == ["high", "other", "low"]


def test_pods_without_a_tenant_share_one() -> None:
    driver = driven("queue { fair by string(10 / pod.priority)  order by pod.createdAt }")
    driver.see(node("n1", cpu="20"), of("x", "p1"), of("y", "p2"), of("x", "t").priority(1))
    assert list(binds(driver.cycle())) == ["p1", "t", "p2"]


def test_the_position_of_a_pod_minds_the_shares() -> None:
    driver = driven(FAIR)
    driver.see(node("n1", cpu="20"), of("a", "old", cpu="3").node("n1"), of("a", "a0"), of("b", "b0"), of("b", "b1"))
    assert [driver.state.queue_position(uid) for uid in ("b0", "b1", "a0")] == [0, 1, 2]


# ---- against a queue that is sorted anew for each pop

TENANTS = st.sampled_from("abc")
moves = st.one_of(
    st.tuples(st.just("push"), TENANTS, st.integers(0, 9), st.integers(0, 3)),
    st.tuples(st.just("discard"), st.integers(0, 9)),
    st.tuples(st.just("place"), TENANTS, st.integers(0, 5), st.integers(1, 3)),
    st.tuples(st.just("unplace"), TENANTS, st.integers(0, 5)),
    st.tuples(st.just("node"), st.integers(4, 9)),
    st.tuples(st.just("pop")),
)
WEIGHTS = {"a": 2.0}


class Naive:
    """Counts and compares everything at each pop."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view
        self.pods: dict[str, tuple[QueuedPod, tuple[Any, ...]]] = {}

    def share(self, tenant: str) -> float:
        placed = [pod for pod in self.view.pods.values() if pod.node_name and pod.namespace == tenant]
        cpu = self.view.nodes.allocatable("cpu").sum()
        used = [(sum(pod.requests.cpu for pod in placed), cpu), (len(placed), self.view.nodes.allowed_pods.sum())]
        return max(float(amount / offer) if offer else 0.0 for amount, offer in used) / WEIGHTS.get(tenant, 1.0)

    def pop(self) -> QueuedPod | None:
        def turn(uid: str) -> tuple[Any, ...]:
            pod, key = self.pods[uid]
            first = min(other for mate, other in self.pods.values() if mate.pod.namespace == pod.pod.namespace)
            return self.share(pod.pod.namespace), first, pod.pod.namespace, key

        found = min(self.pods, key=turn, default=None)
        return None if found is None else self.pods.pop(found)[0]


@settings(max_examples=150)
@given(st.lists(moves, max_size=60))
def test_the_same_pod_is_popped_as_if_all_were_sorted_anew(history: list[tuple[Any, ...]]) -> None:
    view = ClusterView()
    fair = FairPods(FairShare(lambda pod: pod.namespace, WEIGHTS), view)
    naive = Naive(view)
    view.add_or_update_node(make_node("n").capacity(cpu="6", memory="8Gi", pods="10").version(1).build())
    for version, (move, *values) in enumerate(history, start=2):
        if move == "push":
            tenant, number, priority = values
            queued = QueuedPod(make_pod(f"q{number}", tenant).uid(f"q{number}").info(), 0.0)
            key = (priority, queued.uid)
            fair.push(queued, key)
            naive.pods[queued.uid] = (queued, key)
        elif move == "discard":
            assert fair.discard(f"q{values[0]}") == (naive.pods.pop(f"q{values[0]}", None) is not None)
        elif move == "place":
            tenant, number, cpu = values
            placed = make_pod(f"r{number}", tenant).uid(f"{tenant}{number}").req(cpu=str(cpu)).node("n")
            view.add_or_update_pod(placed.version(version).build())
        elif move == "unplace":
            view.remove_pod("".join(map(str, values)))
        elif move == "node":
            view.add_or_update_node(
                make_node("n").capacity(cpu=str(values[0]), memory="8Gi", pods="10").version(version).build()
            )
        else:
            assert fair.pop() is naive.pop()
        assert len(fair) == len(naive.pods)
        assert fair._tenant_of.keys() == naive.pods.keys()
        validate_view(view)
    while naive.pods:
        assert fair.pop() is naive.pop()
    assert fair.pop() is None


def test_a_pop_among_many_pods_and_tenants_costs_little() -> None:
    view = ClusterView()
    fair = FairPods(FairShare(lambda pod: pod.namespace), view)
    pods = [QueuedPod(make_pod(f"p{i}", f"t{i % 500}").info(), 0.0) for i in range(20_000)]
    for number, pod in enumerate(pods):
        fair.push(pod, (number,))
    began = process_time()
    for _ in range(10_000):
        fair.pop()
    # Far from what sorting 20,000 pods for each pop would take (some 20 s), and as far from what a slow machine needs.
    assert process_time() - began < 2.0
