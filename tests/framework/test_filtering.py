"""What a diagnosis answers, and the sentence a user reads."""

from __future__ import annotations

import numpy as np

from policyengine.framework.filtering import Diagnosis, Verdict, fit_error_message
from policyengine.framework.status import Code, Refusal, Status

NAMES = ["d", "c", "b", "a"]
FULL = Refusal(Code.UNSCHEDULABLE, ("Too many pods", "Insufficient cpu"))
HOPELESS = Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("Insufficient cpu",))


def diagnosis() -> Diagnosis:
    taints = Verdict(
        "TaintToleration",
        np.array([1, 0, 0, 0], dtype=np.int16),
        (Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("tainted",)),),
    )
    fit = Verdict("NodeResourcesFit", np.array([1, 1, 2, 0], dtype=np.int16), (FULL, HOPELESS))
    return Diagnosis(NAMES, np.array([3]), (taints, fit), None)


def test_the_first_refusing_filter_counts() -> None:
    assert diagnosis().refusal(0).plugin == "TaintToleration"
    assert diagnosis().refusal(1) == Status(Code.UNSCHEDULABLE, FULL.reasons, "NodeResourcesFit")
    assert diagnosis().refusal(3).is_success


def test_rows_are_grouped_by_the_plugin_that_refused_first() -> None:
    grouped = {plugin: rows.tolist() for plugin, rows in diagnosis().by_plugin().items()}
    assert grouped == {"TaintToleration": [0], "NodeResourcesFit": [1, 2]}
    assert diagnosis().plugins == {"TaintToleration", "NodeResourcesFit"}


def test_a_plugin_that_refuses_no_node_first_is_not_named() -> None:
    everywhere = Verdict("A", np.ones(4, dtype=np.int16), (HOPELESS,))
    later = Verdict("B", np.ones(4, dtype=np.int16), (HOPELESS,))
    assert Diagnosis(NAMES, np.array([], dtype=np.int64), (everywhere, later), None).plugins == {"A"}


def test_only_what_evictions_may_cure_is_open_to_preemption() -> None:
    assert diagnosis().rows_with(Code.UNSCHEDULABLE).tolist() == [1]
    assert diagnosis().rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist() == [0, 2]


def test_reasons_are_counted_and_sorted_as_kube_scheduler_does() -> None:
    assert diagnosis().message("preemption: 0/4 nodes are available.") == (
        "0/4 nodes are available: 1 Too many pods, 1 tainted, 2 Insufficient cpu. preemption: 0/4 nodes are available."
    )


def test_a_reason_that_differs_from_node_to_node_is_counted_once_quoting_the_first_name() -> None:
    rendered = Refusal(Code.UNSCHEDULABLE, render=lambda rows: [f"needs 2Gi, has {row}Gi" for row in rows])
    rule = Verdict("headroom", np.array([1, 1, 1, 0], dtype=np.int16), (rendered,))
    found = Diagnosis(NAMES, np.array([3]), (rule,), None)
    assert found.counts() == [("needs 2Gi, has 2Gi (b)", 3)]
    assert found.refusal(0).reasons == ("needs 2Gi, has 0Gi",)


def test_a_refusal_in_pre_filter_stands_for_all_nodes() -> None:
    status = Status(Code.PENDING, ("waits for a claim",), "VolumeBinding")
    found = Diagnosis(NAMES, np.array([], dtype=np.int64), (), status)
    assert found.refusal(2) is status
    assert found.plugins == found.pending_plugins == {"VolumeBinding"}
    assert found.message() == "0/4 nodes are available: waits for a claim."
    assert found.rows_with(Code.PENDING).tolist() == [0, 1, 2, 3]


def test_pending_is_told_apart() -> None:
    pending = Verdict("quota", np.array([1, 0, 0, 0], dtype=np.int16), (Refusal(Code.PENDING, ("later",)),))
    assert Diagnosis(NAMES, np.array([1, 2, 3]), (pending,), None).pending_plugins == {"quota"}
    assert diagnosis().pending_plugins == frozenset()


def test_messages_without_nodes_or_reasons_read_as_kube_schedulers() -> None:
    assert fit_error_message(0, []) == "no nodes available to schedule pods"
    assert fit_error_message(3, []) == "0/3 nodes are available:"
    assert fit_error_message(12, [("z", 2), ("a", 10)]) == "0/12 nodes are available: 10 a, 2 z."


def test_rows_refused_for_the_same_words_are_told_together_and_say_what_each_is_told_alone() -> None:
    rendered = Refusal(Code.UNSCHEDULABLE, render=lambda rows: [f"has {row % 2}Gi" for row in rows])
    plain = Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("is full",))
    one = Verdict("headroom", np.array([1, 2, 1, 0, 1, 0], dtype=np.int16), (rendered, plain))
    other = Verdict("later", np.array([1, 0, 0, 1, 0, 0], dtype=np.int16), (plain,))
    found = Diagnosis([f"n{row}" for row in range(6)], np.array([5]), (one, other), None)
    told = [(status, rows.tolist()) for status, rows in found.refusals(np.array([0, 1, 2, 3, 4]))]
    assert [rows for _, rows in told] == [[0, 2, 4], [1], [3]]
    for status, rows in told:
        assert all(found.refusal(row) == status for row in rows)
    assert [rows.tolist() for _, rows in found.refusals(np.array([3, 2]))] == [[2], [3]]
