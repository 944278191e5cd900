from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from policyengine.language.types import INT
from policyengine.tuning.dimensions import Dimension
from policyengine.tuning.judging import Judged, Judges, Task
from policyengine.tuning.objective import Objective, objective
from policyengine.tuning.search import BATCH, ENOUGH, Study, StudyUnusable

pytest.importorskip("optuna", reason="Optuna is not installed")

DIMENSIONS = (
    Dimension("x", "5", INT, (), 0, 100, 1),
    Dimension("mode", "a", INT, ("a", "b")),
    Dimension("weight:w", "3", INT, (), 1, 100, 1, is_ratio=True),
)
WAIT = (objective("p99(wait)"),)


class Valley(Judges):
    """Answers (x - 30)², and more in mode `b`, without playing anything; a constraint breaks above 80."""

    def __init__(self, dies_after: int | None = None, objectives: int = 1) -> None:
        self.asked: list[Task] = []
        self._dies_after, self._objectives = dies_after, objectives

    def as_finished(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Judged]]:
        """The last is finished first."""
        for place, task in reversed(list(enumerate(tasks))):
            if self._dies_after is not None and len(self.asked) >= self._dies_after:
                raise KeyboardInterrupt
            self.asked.append(task)
            x = int(task.values["x"])
            value = float((x - 30) ** 2 + (1000 if task.values.get("mode") == "b" else 0))
            if task.limits and value > task.limits[0]:
                yield place, Judged([], [], 0, [value], stopped=True)
            else:
                yield place, Judged([{}], [[value, float(x)][: self._objectives]], int(x > 80), [value] * 4)

    def __exit__(self, *_: object) -> None:
        pass


def study(path: Path | None = None, seed: int = 0, about: Mapping[str, object] | None = None) -> Study:
    return Study(DIMENSIONS, WAIT, seed, dict(about or {"policy": "p"}), path)


def searched(found: Study, trials: int, workers: Judges | None = None) -> list[object]:
    found.search(trials, workers or Valley(), [0], [{}], lambda: None)
    return [(dict(one.values), one.objectives) for one in found.tried]


def test_the_valley_is_found_and_its_main_dimension_named() -> None:
    found = study()
    searched(found, 80)
    best = found.best()
    assert best is not None
    assert abs(int(best.values["x"]) - 30) <= 3
    assert best.values["mode"] == "a"
    importance = found.importance()
    assert max(importance, key=lambda name: importance[name]) in ("x", "mode")
    assert importance["weight:w"] < 0.2


def test_the_same_seed_gives_the_same_candidates_and_another_one_others() -> None:
    assert searched(study(), 24) == searched(study(), 24)
    assert searched(study(), 24) != searched(study(seed=1), 24)


@pytest.mark.parametrize("objectives", [WAIT, (*WAIT, objective("evictions"))])
def test_a_study_that_is_continued_goes_on_as_if_it_had_never_ended(
    tmp_path: Path, objectives: Sequence[Objective]
) -> None:
    def found(name: str, *trials: int) -> tuple[object, ...]:
        for many in trials:
            one = Study(DIMENSIONS, objectives, 0, {}, tmp_path / name)
            one.search(many, Valley(objectives=len(objectives)), [0], [{}], lambda: None)
        return one.tried, one.front(), one.importance()

    assert found("parts", BATCH, 2 * BATCH + 3, 2 * BATCH + 4, 5 * BATCH) == found("whole", 5 * BATCH)


def test_what_was_finished_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        searched(study(tmp_path / "study"), 40, Valley(dies_after=BATCH + 3))
    again = study(tmp_path / "study")
    assert len(again.tried) == BATCH + 3
    assert searched(again, 40) == searched(study(), 40)


def test_a_candidate_worse_than_the_median_is_stopped_once_enough_were_played() -> None:
    found, workers = study(), Valley()
    searched(found, ENOUGH + 2 * BATCH, workers)
    assert all(not task.limits for task in workers.asked[:ENOUGH])
    assert all(len(task.limits) == 4 for task in workers.asked[ENOUGH:])
    assert all(one.objectives for one in found.tried[:ENOUGH])
    stopped = [one for one in found.tried if not one.objectives]
    assert stopped and found.best() not in stopped


def test_what_breaks_a_constraint_is_not_the_best() -> None:
    found = Study(DIMENSIONS[:1], (objective("maximize waiting"),), 0, {})
    searched(found, 60)
    best = found.best()
    assert best is not None and int(best.values["x"]) <= 80
    assert any(int(one.values["x"]) > 80 for one in found.tried)


def test_of_two_objectives_the_front_has_what_nobody_is_better_than() -> None:
    class Two(Valley):
        def as_finished(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Judged]]:
            for place, task in enumerate(tasks):
                x = int(task.values["x"])
                yield place, Judged([{}], [[float(x), float(max(0, 50 - x))]], 0, [])

    found = Study(DIMENSIONS[:1], (objective("waiting"), objective("evictions")), 0, {})
    found.search(40, Two(), [0], [{}], lambda: None)
    front = {int(one.values["x"]) for one in found.front()}
    tried = {int(one.values["x"]) for one in found.tried}
    assert front == {x for x in tried if x <= 50} or front == {x for x in tried if x <= 50} | {
        min((x for x in tried if x >= 50), default=50)
    }


def test_a_study_of_something_else_is_refused_by_its_name(tmp_path: Path) -> None:
    searched(study(tmp_path / "study"), BATCH)
    with pytest.raises(StudyUnusable, match="a study of another policy"):
        study(tmp_path / "study", about={"policy": "q"})
    with pytest.raises(StudyUnusable, match="another seed"):
        study(tmp_path / "study", seed=4)


@pytest.mark.parametrize("text", ["{}", "nonsense\n", '{"op_code": 77}\n', "\x00" * 40])
def test_a_file_that_is_no_study_is_told_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "study").write_text(text)
    with pytest.raises(StudyUnusable, match="is no study"):
        study(tmp_path / "study")
