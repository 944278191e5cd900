from policyengine.framework.profile import Profile
from policyengine.kube.policies.precedence import Candidate, Precedence, Problem, SourceKey, changes


def profile(scheduler: str, digest: str) -> Profile:
    return Profile(name=f"policy-{digest}", scheduler_name=scheduler, policy_hash=digest)


def key(name: str, kind: str = "ConfigMap") -> SourceKey:
    return SourceKey("ns", name, kind)


def candidate(name: str, created: str, *profiles: Profile, problem: Problem | None = None) -> Candidate:
    return Candidate(key(name), created, profiles, problem)


def serving(precedence: Precedence) -> dict[str, str]:
    return {name: one.policy_hash for name, one in precedence.decide()[0].items()}


def test_a_config_map_overrides_a_file_and_its_deletion_restores_it() -> None:
    precedence = Precedence([profile("s", "file")])
    assert serving(precedence) == {"s": "file"}
    precedence.put(candidate("a", "2026", profile("s", "map")))
    assert serving(precedence) == {"s": "map"}
    precedence.remove(key("a"))
    assert serving(precedence) == {"s": "file"}


def test_of_two_config_maps_of_one_second_the_name_decides() -> None:
    precedence = Precedence()
    precedence.put(candidate("b", "2026", profile("s", "b")))
    precedence.put(candidate("a", "2026", profile("s", "a")))
    assert serving(precedence) == {"s": "a"}


def test_a_broken_version_keeps_serving_what_served() -> None:
    precedence = Precedence()
    precedence.put(candidate("a", "2026", profile("s", "good")))
    precedence.put(candidate("a", "2026", problem=Problem("bad", 3, 1)))
    assert serving(precedence) == {"s": "good"}
    standing = precedence.decide()[1][key("a")]
    assert (standing.how, standing.policy_hash, standing.problem) == ("LastGood", "good", Problem("bad", 3, 1))


def test_a_config_map_made_anew_inherits_nothing() -> None:
    precedence = Precedence()
    precedence.put(candidate("a", "2026-01", profile("s", "good")))
    precedence.put(candidate("a", "2026-02", problem=Problem("bad")))
    assert serving(precedence) == {}


def test_a_config_map_is_accepted_whole_or_not_at_all() -> None:
    precedence = Precedence()
    precedence.put(candidate("old", "2026-01", profile("s", "1")))
    precedence.put(candidate("new", "2026-02", profile("s", "2"), profile("t", "2")))
    assert serving(precedence) == {"s": "1"}


def test_changes_names_what_is_new_replaced_and_gone() -> None:
    before = {"a": profile("a", "1"), "b": profile("b", "1"), "c": profile("c", "1")}
    after = {"a": profile("a", "1"), "b": profile("b", "2"), "d": profile("d", "1")}
    put, gone = changes(before, after)
    assert [one.scheduler_name for one in put] == ["b", "d"]
    assert gone == ["c"]
