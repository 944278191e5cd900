"""The small fixed workload of every build."""

from benchmarks.ratios import KINDS, ratios


def test_every_peer_workload_is_told_in_units_of_work_done_beside_it() -> None:
    found = ratios(nodes=20, pods=10)
    expected = [f"peer-{kind}: {what}" for kind in KINDS for what in ("decision", "pod event")]
    assert [row.what for row in found] == expected
    assert all(row.value > 0 for row in found)
    assert [row.more for row in found[::2]] == [", 10 checked"] * len(KINDS)
