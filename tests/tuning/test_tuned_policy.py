import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language.diagnostics import Source
from policyengine.policy_compiler import compile_files, compile_policy
from policyengine.tuning.dimensions import NothingToTune, chosen
from policyengine.tuning.tuned_policy import Subject

TEXT = """\
policy "p" {
  base filters
  param share: double = 0.5 range [0.0, 1.0]
  param spare: memory = 1Gi range [0Gi, 64Gi]
  param cores: cpu = 2 range [1, 20]
  param pause: duration = 90s range [10s, 10min]
  param count: int = -3 range [-5, 5]
  param mode: string = "pack" values ["pack", "spread"]
  param free: int = 1
  param open: int = 1 range [1, 1]
  filter "room" { require node.free.memory >= spare && node.free.cpu >= cores && count <= free + open && pause > 1s }
  score "mode" weight 3 = mode == "pack" ? 100 * share : 0.0 // stays
  score "given" weight open = 1
  score "tier" tier = 1
  use NodeResourcesFit weight 7 {}
}
"""
NAMES = ["share", "spare", "cores", "pause", "count", "mode", "weight:mode", "weight:NodeResourcesFit"]


def subject(text: str = TEXT, **given: object) -> Subject:
    return Subject((Source("p.policy", text),), given)


def test_what_declares_a_range_or_values_can_be_varied_and_weights_that_are_numbers() -> None:
    assert [one.name for one in subject().dimensions] == NAMES
    assert [one.now for one in subject(cores="3").dimensions] == ["0.5", "1Gi", "3", "90s", "-3", "pack", "3", "7"]


def test_each_value_is_told_as_one_writes_it() -> None:
    found = {one.name: one for one in subject().dimensions}
    assert found["mode"].profile(5) == ["pack", "spread"]
    assert found["spare"].profile(3) == ["0", "32Gi", "64Gi"]
    assert found["cores"].profile(3) == ["1", "10500m", "20"]
    assert found["share"].written(0.123456) == "0.123"
    assert found["weight:mode"].profile(3) == ["1", "10", "100"]


@settings(max_examples=30)
@given(st.data())
def test_whatever_is_found_compiles_and_means_the_same_as_params_and_as_a_patch(data: st.DataObject) -> None:
    here = subject()
    values = {one.name: data.draw(st.sampled_from(one.profile(7))) for one in here.dimensions}
    profile = here.profile(values)
    patched = compile_files(here.patched(values))
    assert not patched.failed
    assert [weight for _, weight in patched.profiles[0].scores] == [weight for _, weight in profile.scores]
    assert "// stays" in here.patched(values)[0].text


def test_the_patch_changes_the_lines_of_what_was_found_and_no_others() -> None:
    changed = subject().patch({"spare": "2Gi", "mode": "spread", "weight:mode": "50"})
    assert [line for line in changed.splitlines() if line[0] in "+-"] == [
        "--- a/p.policy",
        "+++ b/p.policy",
        "-  param spare: memory = 1Gi range [0Gi, 64Gi]",
        "+  param spare: memory = 2Gi range [0Gi, 64Gi]",
        '-  param mode: string = "pack" values ["pack", "spread"]',
        '+  param mode: string = "spread" values ["pack", "spread"]',
        '-  score "mode" weight 3 = mode == "pack" ? 100 * share : 0.0 // stays',
        '+  score "mode" weight 50 = mode == "pack" ? 100 * share : 0.0 // stays',
    ]


def test_a_param_of_a_library_is_changed_where_it_stands() -> None:
    library = Source("lib.policy", 'library "safe" {\n  param most: double = 0.5 range [0.0, 1.0]\n}\n')
    policy = Source("p.policy", 'import "safe"\npolicy "p" {\n  filter "f" { require safe.most > 0.1 }\n}\n')
    here = Subject((library, policy), {})
    assert [one.name for one in here.dimensions] == ["safe.most"]
    assert [one.text for one in here.patched({"safe.most": "0.75"})] == [
        library.text.replace("0.5", "0.75"),
        policy.text,
    ]


def test_the_only_score_has_nothing_to_be_weighed_against() -> None:
    alone = subject('policy "p" {\n  base filters\n  score "s" weight 3 = 1\n}\n')
    assert alone.dimensions == []
    with pytest.raises(NothingToTune, match="no param with a `range` or `values`"):
        chosen(alone.dimensions, [], alone.policy.params)


@pytest.mark.parametrize(
    ("name", "said"),
    [("free", "param `free` has no `range`"), ("shares", "did you mean `share`"), ("zzz", "there are")],
)
def test_what_cannot_be_varied_is_told(name: str, said: str) -> None:
    here = subject()
    with pytest.raises(NothingToTune, match=said):
        chosen(here.dimensions, [name], here.policy.params)


def test_two_policies_are_not_tuned_at_once() -> None:
    with pytest.raises(NothingToTune, match="one is tuned at a time"):
        assert subject('policy "a" {}\npolicy "b" { scheduler "b" }\n').dimensions


def test_other_processes_make_the_same_of_it() -> None:
    here = subject()
    assert here.dimensions
    again = pickle.loads(pickle.dumps(here))
    assert again.dimensions == here.dimensions
    assert compile_policy(TEXT).policy_hash == again.profile({}).policy_hash
