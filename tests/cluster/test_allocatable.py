from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster import allocatable
from policyengine.cluster.allocatable import Allocatable, allocatable_of
from policyengine.cluster.node_objects import Node, NodeStatus
from policyengine.cluster.objects import ObjectMeta
from policyengine.quantity import QuantityError

AMOUNTS = st.one_of(
    st.sampled_from(["1", "1500m", "1.5Gi", "-1", "lots", "1e3", "0.5"]), st.integers(-1, 3), st.just(1.5)
)
WRITTEN = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "x/gpu", "hugepages-2Mi", "other"]), AMOUNTS, max_size=4
)


def fresh(name: str, written: dict[str, str | int | float]) -> Allocatable:
    """What a node offers, worked out for itself."""
    if not written:
        return allocatable_of(Node(metadata=ObjectMeta(name=name)))
    try:
        return allocatable._parsed.__wrapped__(tuple(written.items()))
    except QuantityError as error:
        return Allocatable({}, 0, f"node `{name}`: allocatable {error}")


@given(st.lists(WRITTEN, max_size=8))
def test_a_node_offers_the_same_whoever_was_read_before_it(nodes: list[dict[str, str | int | float]]) -> None:
    for at, written in enumerate(nodes):
        node = Node(metadata=ObjectMeta(name=f"n{at}"), status=NodeStatus(allocatable=written))
        assert allocatable_of(node) == fresh(f"n{at}", written)
