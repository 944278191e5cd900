"""Many plays at once: each is the one that would be played alone."""

from pathlib import Path

import pytest

from policyengine.framework.profile import LoadedFrom
from policyengine.plan.history import read
from policyengine.plan.measures import measures
from policyengine.plan.membership import Memberships, Watching
from policyengine.plan.rerun import finished, rerun
from policyengine.policy_compiler import compile_files
from policyengine.trials.simulation import Simulation
from policyengine.tuning.sweep import Pair, Recordings, Seeds, changes, distribution, distributions
from policyengine.tuning.tuned_policy import in_tree
from tests.tuning.played import TEXT, recording, scenario, source

WIDE = LoadedFrom({"p.policy": TEXT}, {"most": "40"})


def test_a_seed_of_many_has_the_figures_of_one_alone(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    watching = Watching(Memberships((), Simulation(path, seed=3).profiles))
    alone = Simulation(path, seed=3, watch=watching)
    watching.play = alone.play
    outcome = alone.run()
    figures, verdicts = Seeds(str(path), None, in_tree)(3)
    assert (figures, verdicts) == (measures(finished(alone.play, watching)), outcome.verdicts)


def test_given_policies_take_the_place_of_the_scenarios(tmp_path: Path) -> None:
    path = str(scenario(tmp_path))
    narrow, wide = (Seeds(path, given, in_tree)(1)[0] for given in (None, WIDE))
    assert wide["wait"]["p99"] < narrow["wait"]["p99"]


def test_a_recording_of_many_has_the_figures_of_a_plan_of_it(tmp_path: Path) -> None:
    path = recording(tmp_path, 2)
    (wide,) = compile_files([source()], {"most": "40"}).profiles
    pair = Recordings(None, WIDE, in_tree)(str(path))
    history = read(path)
    served = list(history.profiles.values())
    assert pair.old == measures(rerun(history, served))
    assert pair.new == measures(rerun(history, [wide], memberships=Memberships(served, [wide])))
    assert Recordings(WIDE, WIDE, in_tree)(str(path)).old == pair.new


def test_a_distribution_has_the_interval_of_its_mean() -> None:
    found = distribution([3.0, 1.0, 2.0])
    assert found[2:] == (1.0, 2.0, 3.0, 3.0)
    assert found.mean == 2.0
    assert found.json["interval"] == pytest.approx([-0.484, 4.484], abs=1e-3)  # 2 ± 4.303 / √3
    assert distribution([5.0]).json["interval"] is None


def test_figures_are_named_as_an_expression_names_them_and_what_a_run_lacks_is_0() -> None:
    runs = [{"placed": 2, "allocated": {"cpu": 0.5, "nvidia.com/gpu": 1.0}}, {"placed": 4, "allocated": {"cpu": 0.5}}]
    found = distributions(runs)
    assert {name: one.mean for name, one in found.items()} == {
        "placed": 3.0,
        "allocated.cpu": 0.5,
        'allocated["nvidia.com/gpu"]': 0.5,
    }


def test_a_change_is_between_two_runs_of_one_recording() -> None:
    pairs = [Pair({"waiting": 10}, {"waiting": 8}, []), Pair({"waiting": 100}, {"waiting": 98}, [])]
    (old, new, more) = changes(pairs)["waiting"]
    assert (old.mean, new.mean) == (55.0, 53.0)
    assert (more.least, more.most) == (-2.0, -2.0)
    assert more.sure is not None and more.sure.excludes_zero
