import numpy as np
import pytest

from policyengine.cluster.node_table import NodeTable
from tests.builders import make_node, make_pod


def table_of(*builders):
    table = NodeTable()
    for builder in builders:
        table.set_node(builder.build())
    return table


def test_amounts_are_millicores_and_whole_units():
    node = make_node("a").capacity(cpu="1500m", memory="1Gi", pods=110, ephemeral_storage="1k")
    table = table_of(node.capacity({"nvidia.com/gpu": 4}), make_node("b").capacity(cpu=1))
    assert table.allocatable("cpu").tolist() == [1500, 1000]
    assert table.allocatable("memory").tolist() == [2**30, 0]
    assert table.allocatable("nvidia.com/gpu").tolist() == [4, 0]
    assert table.allocatable("never/heard-of").tolist() == [0, 0]
    assert table.requested("never/heard-of").tolist() == [0, 0]
    assert table.allowed_pods.tolist() == [110, 0]
    assert table.derived.capacity("pods").tolist() == [110, 0]
    assert table.resources == ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"]


def test_resources_keep_their_order_of_arrival_whether_offered_or_asked_for():
    table = table_of(make_node("a").capacity({"x/b": 1}))
    table.add_pod(0, make_pod().req({"x/a": 3}).info())
    assert table.resources[3:] == ["x/b", "x/a"]
    assert table.requested("x/a").tolist() == [3]
    assert table.allocatable("x/a").tolist() == [0]


@pytest.mark.parametrize(
    "node",
    [
        make_node("a"),
        make_node("a").allocatable(cpu="lots", memory="1Gi"),
        make_node("a").allocatable(cpu="-1", memory="1Gi"),
    ],
)
def test_a_node_that_cannot_be_read_is_kept_and_holds_nothing(node):
    table = table_of(node)
    assert (table.n, table.allocatable("memory").tolist(), table.allowed_pods.tolist()) == (1, [0], [0])
    table.set_node(make_node("a").capacity(cpu=1, pods=1).build())
    assert table.allocatable("cpu").tolist() == [1000]


def test_an_update_without_news_of_images_shares_them():
    table = table_of(make_node("a").image("x:1", 10), make_node("b").image("x:1", 10))
    table.set_node(make_node("a").image("x:1", 10).label("k", "v").build())
    assert table.objects[0].status.images[0] is table.objects[1].status.images[0]


def test_ids_of_churning_labels_stay_bounded_and_readers_are_told():
    table = table_of(make_node("a").label("k", "first"))
    table.label_ids("k")
    position = table.node_journal.position
    for n in range(1100):
        table.set_node(make_node("a").label("k", str(n)).build())
    assert len(table.label_values("k")) <= 1025
    assert table.node_journal.since(position) is None
    assert table.label_values("k")[table.label_ids("k")[0]] == "1099"


def test_labels_that_no_node_has_share_one_column_until_one_has_them():
    table = table_of(make_node("a").label("zone", "z"), make_node("b"))
    assert [table.label_ids(key).tolist() for key in ("k1", "k2")] == [[-1, -1]] * 2
    assert table.derived.encoded("label", "k1") is table.derived.encoded("label", "k2")
    assert not table.has_label("k1")
    assert [numbers.tolist() for numbers in table.derived.parsed("annotation", "k1", int)] == [[0, 0], [False, False]]
    table.set_node(make_node("b").label("k1", "v").annotation("k1", "7").build())
    table.set_node(make_node("c").build())
    assert (table.label_ids("k1").tolist(), table.label_values("k1")) == ([-1, 0, -1], ["v"])
    assert table.label_ids("k2").tolist() == [-1, -1, -1]
    assert table.derived.parsed("annotation", "k1", int)[0].tolist() == [0, 7, 0]
    table.remove_node("b")
    assert table.label_ids("k1").tolist() == [-1, -1]


def test_resources_that_are_only_asked_for_have_no_column_and_count_all_the_same():
    table = table_of(*(make_node(name) for name in "abc"))
    columns = len(list(table._amounts()))
    infos = [make_pod(f"p{n}").req({f"x/{n}": n + 1, "x/all": 1}).info() for n in range(4)]
    for row, info in zip((0, 1, 2, 2), infos, strict=True):
        table.add_pod(row, info)
    assert len(list(table._amounts())) == columns
    assert table.requested("x/all").tolist() == [1, 1, 2]
    assert (table.room("x/3", 2), table.room("x/3", 0)) == ((0, -4), (0, 0))
    hypothetical = table.with_own_sums()
    hypothetical.shift_sums(np.array([2]), {"x/all": np.array([-2])}, np.array([-2]))
    assert (hypothetical.requested("x/all").tolist(), table.requested("x/all").tolist()) == ([1, 1, 0], [1, 1, 2])
    table.remove_node("a")  # c takes its row
    assert (table.requested("x/all").tolist(), table.requested("x/0").tolist()) == ([2, 1], [0, 0])
    table.set_node(make_node("b").capacity({"x/all": 5}).build())
    assert (table.free("x/all").tolist(), table.requested("x/all").tolist()) == ([-2, 4], [2, 1])
    table.remove_pod(0, infos[2])
    table.remove_pod(0, infos[3])
    table.remove_pod(1, infos[1])
    assert table.requested("x/all").tolist() == [0, 0]
    assert table.resources == ["cpu", "memory", "ephemeral-storage", "x/all"]


def test_columns_are_views_without_copies():
    table = table_of(*(make_node(f"n{n}").capacity(cpu=1) for n in range(100)))
    column = table.allocatable("cpu")
    assert column.base is not None
    assert column.dtype == np.int64
    assert len(column) == len(table.name_hash) == len(table.created_at) == 100
    assert table.name_hash.dtype == np.uint64
