"""What is said to have changed is all that changed, and a column kept by it equals one worked out afresh."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.view import ClusterView
from policyengine.framework.changes import KEPT, ChangeLog, Reader, RowColumn
from policyengine.framework.status import Rows
from tests.builders import make_node, make_pod

DELTAS = st.lists(st.none() | st.sets(st.integers(0, 40), max_size=12), max_size=3 * KEPT)


@settings(max_examples=60)
@given(DELTAS, st.data())
def test_a_reader_hears_the_union_of_what_came_since_it_asked_or_everything(
    deltas: list[set[int] | None], data: st.DataObject
) -> None:
    log = ChangeLog()
    reader = Reader([log])
    assert reader.changed() is None
    unheard: list[set[int] | None] = []
    for delta in deltas:
        log.note(None if delta is None else np.array(sorted(delta), dtype=np.int64))
        unheard.append(delta)
        if data.draw(st.integers(0, 9)) == 0:
            said = reader.changed()
            if said is None:
                assert None in unheard or len(unheard) > KEPT
            else:
                assert said.tolist() == sorted(set().union(*(one or set() for one in unheard)))
                assert None not in unheard
            unheard = []


def free_cpu(nodes: NodeTable, rows: Rows) -> np.ndarray:
    return nodes.allocatable("cpu")[rows] - nodes.requested("cpu")[rows]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["node", "gone", "pod", "ask"]), st.integers(0, 9)), max_size=60))
def test_a_row_column_is_what_its_kernel_says_of_all_rows(history: list[tuple[str, int]]) -> None:
    view, column = ClusterView(), RowColumn(free_cpu)
    for step, (what, number) in enumerate(history):
        if what == "node":
            view.add_or_update_node(make_node(f"n{number}").allocatable(cpu=str(1 + step), pods=100).build())
        elif what == "gone":
            view.remove_node(f"n{number}")
        elif what == "pod":
            pod = make_pod(f"p{step}").req(cpu=f"{100 + number}m").node(f"n{number}")
            view.add_or_update_pod(pod.build())
        else:
            assert column.values(view.nodes).tolist() == free_cpu(view.nodes, np.arange(view.nodes.n)).tolist()
