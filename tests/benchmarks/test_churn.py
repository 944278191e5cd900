"""The agenda of churn is that of its seed, and what schedulers count is read off their metrics."""

from random import Random

from benchmarks.churn import LIFE, RATE, Agenda, Churned, _counted, figures

METRICS = """\
# TYPE scheduler_schedule_attempts_total counter
scheduler_schedule_attempts_total{profile="a",result="scheduled"} 2
scheduler_schedule_attempts_total{profile="b",result="scheduled"} 3
scheduler_schedule_attempts_total{profile="a",result="unschedulable"} 5
"""


def test_an_agenda_holds_every_pod_twice_and_nothing_before_its_time() -> None:
    def times(seed: int) -> list[float]:
        return sorted(at for at, _, _ in Agenda(Random(seed), nodes=5, pods=60).plan())

    assert times(1) == times(1) != times(2)
    assert times(1)[0] == 0.0 and 60 / RATE < times(1)[-1] <= 60 / RATE + LIFE[1]
    assert len(times(1)) >= 120


def test_attempts_are_counted_by_result_over_all_profiles() -> None:
    attempts = _counted(METRICS, "scheduler_schedule_attempts", "result")
    assert attempts == {"scheduled": 5.0, "unschedulable": 5.0}
    ours, theirs = (Churned(name, attempts, {}, [], 1.0) for name in ("policyengine", "kube-scheduler"))
    first = figures([ours, theirs])[0]
    assert (first.value, first.at_most, first.met) == (2.0, 2.0, True)
