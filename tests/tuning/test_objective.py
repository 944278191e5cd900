import pytest

from policyengine.tuning.objective import WrongObjective, broken, objective

OLD = {"wait": {"p99": 10.0, "mean": 4.0}, "evictions": 2, "utilisation": {"nvidia.com/gpu": 0.5}, "waiting": 1}
NEW = {"wait": {"p99": 7.0, "mean": 3.0}, "evictions": 3, "utilisation": {"nvidia.com/gpu": 0.75}, "waiting": 0}


@pytest.mark.parametrize(
    ("text", "sign", "value"),
    [
        ("p99(wait)", -1, 7.0),
        ("wait.mean", -1, 3.0),
        ('utilisation["nvidia.com/gpu"]', 1, 0.75),
        ("evictions", -1, 3.0),
        ("maximize wait.mean", 1, 3.0),
        ("minimize wait.mean + 2.0 * wait.p99", -1, 17.0),
        ("minimize wait.p99 / old", -1, 0.7),
    ],
)
def test_a_figure_says_itself_which_way_is_better_and_words_say_it_of_anything(
    text: str, sign: int, value: float
) -> None:
    found = objective(text)
    assert (found.sign, found.of(OLD, NEW)) == (sign, pytest.approx(value))
    assert found.better(1.0, 2.0) == (sign < 0)
    assert str(objective(str(found))) == str(found)


@pytest.mark.parametrize("text", ["wait.mean + wait.p99", "imbalance.cpu", "pods", "1.0", "", "minimize"])
def test_where_nothing_says_which_way_is_better_words_are_asked_for(text: str) -> None:
    with pytest.raises(WrongObjective, match="write `minimize"):
        objective(text)


@pytest.mark.parametrize(
    ("text", "said"), [("minimize nobody", "nobody"), ("minimize wait", "no number"), ("minimize wait.p99 > 1.0", "no")]
)
def test_what_is_no_number_is_told(text: str, said: str) -> None:
    with pytest.raises(WrongObjective, match=said):
        objective(text).of(OLD, NEW)


def test_constraints_that_are_not_kept_are_counted() -> None:
    assert broken(["evictions <= old", "waiting == 0", "p99(wait) < old"], OLD, NEW) == 1
    with pytest.raises(WrongObjective, match="constraint"):
        broken(["evictions"], OLD, NEW)
