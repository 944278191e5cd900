"""Time alone makes nothing grow; `make soak` plays a whole day."""

from tests.faults.churn import bound, hours_of


def test_hours_of_churn_leave_nothing_behind() -> None:
    found = hours_of(2)
    grown = {what: [one[what] for one in found] for what in found[0] if found[-1][what] > bound(what, found[0])}
    assert not grown
