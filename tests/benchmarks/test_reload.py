"""A reload is measured: what is told are times of that very work."""

from benchmarks.machine import this_machine
from benchmarks.measure import alone_record
from benchmarks.reload import reloads


def test_a_reload_is_measured_on_a_small_cluster() -> None:
    found = reloads(repeats=2, nodes=20, waiting=10)
    assert 0 < found.gap_ms <= found.compile_ms
    assert found.swap_ms > 0 and found.first_cycle_ms > 0
    record = alone_record(found, "", "bench reload", this_machine())
    assert set(record.ratios) == set(found.ratios)
