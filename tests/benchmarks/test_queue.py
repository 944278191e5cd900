"""`benchmarks queue` measures what it says, at any size."""

from __future__ import annotations

from rich.console import Console

from benchmarks.machine import this_machine
from benchmarks.measure import alone_record
from benchmarks.page import page
from benchmarks.queue import queue
from benchmarks.tables import show


def test_every_figure_of_the_queue_is_measured_and_shown() -> None:
    figures = queue(pending=3_000, refused=20, gang=4, nodes=10)
    record = alone_record(figures, "", "python -m benchmarks queue", this_machine())
    assert all(value > 0 for value in record.figures.values())
    assert set(record.ratios) == set(figures.ratios)
    console = Console(width=120, record=True, file=None, quiet=False)
    show(record, console)
    said = console.export_text()
    assert "add a pod to 3,000 pending pods" in said
    assert "a gang of 4 on 10 nodes, placed" in said
    page([record])
