"""Names found all at once are those that are found one by one, whatever they look like."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.objects import Node, decode
from policyengine.cluster.view import ClusterView
from policyengine.server.extender.asked import KnownNames, NamedNodes, PriorityEntries, ReadNames
from policyengine.server.extender.node_names import LONGEST, Names, NameTable
from policyengine.server.extender.wire import BadRequest
from tests.server.extender.recorded import Known, ask, verbs
from tests.server.extender.test_verbs import ROOM, node, pod

LETTERS = "ab-.0"
names = st.text(LETTERS, min_size=1, max_size=20) | st.text(LETTERS, min_size=1, max_size=LONGEST)
lists = st.lists(names, min_size=1, max_size=30, unique=True)


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def read(texts: list[str]) -> Names:
    found = Names.read(compact(texts))
    assert found is not None
    return found


def table_of(texts: list[str]) -> ClusterView:
    view = ClusterView()
    for text in texts:
        view.add_or_update_node(decode(Node, node(text)))
    return view


@given(lists, st.lists(names, max_size=10), st.randoms(use_true_random=False))
def test_a_name_has_the_row_it_has_or_none(known: list[str], others: list[str], random: Any) -> None:
    asked = known + others
    random.shuffle(asked)
    rows = {name: row for row, name in enumerate(known)}
    assert NameTable(known).rows(read(asked)).tolist() == [rows.get(name, -1) for name in asked]


@given(st.lists(names | st.text(max_size=12), max_size=12))
def test_strings_are_read_as_json_reads_them_or_left_to_it(texts: list[str]) -> None:
    found = Names.read(compact(texts))
    if found is None:
        assert not texts or any('"' in text or "\\" in text or min(text, default=" ") < " " for text in texts)
    else:
        assert found.lengths.tolist() == [len(text.encode()) for text in texts]


@given(lists, st.data())
def test_what_is_cut_is_what_is_left(texts: list[str], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    left = [text for text, keep in zip(texts, kept, strict=True) if keep]
    assert read(texts).cut(np.array(kept, dtype=np.bool_)) == compact(left)


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b'["a", "b"]',
        b'[ "a"]',
        b'["a\\u0062"]',
        b'["a",1,"b"]',
        b'[["a"],["b"]]',
        b'{"a":"b"}',
        b'"a"',
        compact(["a" * (LONGEST + 1)]),
    ],
)
def test_what_is_not_as_go_writes_it_is_left_to_json(text: bytes) -> None:
    assert Names.read(text) is None


def test_thousands_of_names_that_differ_in_one_letter_are_told_apart() -> None:
    known = [f"ip-10-0-{number // 250}-{number % 250}.eu-central-1.compute.internal" for number in range(20_000)]
    asked = [*known[::-1], "ip-10-0-80-0.eu-central-1.compute.internal", "ip"]
    rows = NameTable(known).rows(read(asked))
    assert rows.tolist() == [*range(19_999, -1, -1), -1, -1]


@given(st.lists(names, min_size=1, max_size=20, unique=True), st.data())
def test_priorities_say_the_same_whichever_way_they_are_written(texts: list[str], data: st.DataObject) -> None:
    scores = np.array(data.draw(st.lists(st.integers(0, 10), min_size=len(texts), max_size=len(texts))))
    rows = np.array(data.draw(st.permutations(range(len(texts)))))
    entries = PriorityEntries.of(texts)
    wanted = [{"Host": texts[row], "Score": score} for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
    if entries is not None:
        assert json.loads(entries.list_of(rows, scores)) == wanted
    else:
        assert max(map(len, texts)) > min(map(len, texts))
    known = table_of(texts)
    assert json.loads(NamedNodes([texts[row] for row in rows], known.nodes).priorities(scores)) == wanted


def test_names_are_learnt_anew_when_the_nodes_change() -> None:
    view, known = table_of(["a", "b", "c"]), KnownNames()
    text = compact(["c", "b", "a"])
    assert known.asked(text, view.nodes).rows.tolist() == [2, 1, 0]
    assert known.asked(text, view.nodes) is known.asked(text, view.nodes)
    view.remove_node("a")  # the last row moves into its place
    assert known.asked(text, view.nodes).rows.tolist() == [0, 1, -1]
    view.add_or_update_node(decode(Node, node("a")))
    assert known.asked(text, view.nodes).rows.tolist() == [0, 1, 2]


def test_what_passed_is_known_when_it_is_asked_about_next() -> None:
    view, known = table_of(["a", "b", "c"]), KnownNames()
    asked = known.asked(compact(["c", "b", "a"]), view.nodes)
    assert isinstance(asked, ReadNames)
    asked.kept(np.array([True, False, True]))
    assert known._last[-1].rows.tolist() == [2, 0] and list(known._last[-1].names) == ["c", "a"]


def test_without_nodes_and_with_names_that_cannot_be_read_each_is_looked_up() -> None:
    known = KnownNames()
    assert known.asked(b'["a"]', ClusterView().nodes).rows.tolist() == [-1]
    assert known.asked(b'["b", "a"]', table_of(["a"]).nodes).rows.tolist() == [-1, 0]
    with pytest.raises(BadRequest, match="the body is no ExtenderArgs"):
        known.asked(b'["a",1]', table_of(["a"]).nodes)


@given(st.data())
def test_written_either_way_a_request_has_the_same_answer(data: st.DataObject) -> None:
    """The verbs as a whole: compact names take one way through the code, names with white space another."""
    known = data.draw(st.lists(names, min_size=1, max_size=6, unique=True))
    asked = data.draw(st.lists(st.sampled_from([*known, "ghost"]), max_size=8, unique=True))
    standing = [pod(f"on-{number}", "1", "6Gi", on=name) for number, name in enumerate(known) if number % 2]
    answering = verbs(Known([node(name) for name in known], standing), ROOM)
    body = {"Pod": pod("p"), "NodeNames": asked}

    async def both(verb: str) -> tuple[Any, Any]:
        return await ask(answering, verb, compact(body)), await ask(
            answering, verb, json.dumps(body, indent=1).encode()
        )

    for verb in ("filter", "prioritize", "filter"):
        fast, slow = drive(both(verb))
        assert fast == slow


def drive(work: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")
