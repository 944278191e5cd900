import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster import journal
from policyengine.cluster.journal import ABSENT, EncodedColumn, Journal, stable_hash


@given(st.lists(st.lists(st.integers(0, 20), max_size=5), max_size=20), st.integers(0, 21))
def test_a_reader_learns_of_every_row_since_its_position(batches, rows):
    changes = Journal()
    changes.row_count = rows
    positions = []
    for batch in batches:
        positions.append(changes.position)
        for row in batch:
            changes.append(row)
    for index, position in enumerate(positions):
        expected = sorted({row for batch in batches[index:] for row in batch if row < rows})
        found = changes.since(position)
        assert found is not None
        assert found.dtype == np.int64
        assert found.tolist() == expected


def test_whoever_stands_too_far_back_computes_everything():
    changes = Journal()
    changes.row_count = 10
    for row in range(journal.JOURNAL_LIMIT + 1):
        changes.append(row % 10)
    assert changes.since(0) is None
    assert changes.since(changes.position) is not None
    assert len(changes._entries) <= journal.JOURNAL_LIMIT
    recent = changes.since(changes.position - 1)
    assert recent is not None
    assert recent.tolist() == [journal.JOURNAL_LIMIT % 10]


def test_a_position_never_reached_is_unknown():
    assert Journal().since(1) is None


def test_forgetting_sends_everyone_back():
    changes = Journal()
    before = changes.position
    changes.forget()
    assert changes.since(before) is None
    now = changes.since(changes.position)
    assert now is not None
    assert now.size == 0


def test_values_are_numbered_in_order_of_arrival_and_told_apart_by_type_or_identity():
    one, other = ["list"], ["list"]
    values = ["a", True, "a", 1, one, other, None]
    column = EncodedColumn(lambda row: values[row], len(values))
    assert column.ids[: len(values)].tolist() == [0, 1, 0, 2, 3, 4, ABSENT]
    assert [column.value(row) for row in range(len(values))] == values


def test_a_column_of_values_long_gone_is_numbered_anew():
    values = ["x", None]
    column = EncodedColumn(lambda row: values[row], 2)
    for generation in range(1100):
        values[0] = f"v{generation}"
        column.refresh(0)
    assert len(column.values) > 1024
    assert column.rebuild_if_stale(2)
    assert column.values == ["v1099"]
    assert column.ids[:2].tolist() == [0, ABSENT]
    assert not column.rebuild_if_stale(2)


def test_the_hash_is_the_same_everywhere():
    assert stable_hash("node-000001") == 5543919749968912772
