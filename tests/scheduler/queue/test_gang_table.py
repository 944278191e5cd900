from hypothesis import given
from hypothesis import strategies as st

from policyengine.scheduler.queue.gang_table import GangTable
from tests.builders import make_pod
from tests.scheduler.driver import Label


def member(name, gang="g", minimum="2", timeout="60"):
    return make_pod(name).labels({"gang": gang, "min": minimum, "timeout": timeout}).info()


class Broken(Label):
    def minimum(self, pod):
        raise ValueError("`minAvailable` is not a number")


class Named(Label):
    name = "by-name"

    def key(self, pod):
        return "everybody"


def test_a_gang_is_complete_when_its_minimum_exists():
    table = GangTable((Label(),))
    assert table.observe(member("a")) == []
    assert table.hold_message("a") == "gang pod-group: 1 of 2 members exist"
    flipped = table.observe(member("b"))
    assert [gang.key for gang in flipped] == ["g"]
    assert table.hold_message("a") == table.hold_message("b") == ""
    table.validate()


def test_a_gang_that_loses_a_member_is_incomplete_again():
    table = GangTable((Label(),))
    table.observe(member("a"))
    table.observe(member("b"))
    assert [gang.is_complete for gang in table.forget("a")] == [False]
    assert table.hold_message("b") == "gang pod-group: 1 of 2 members exist"


def test_the_largest_minimum_and_the_shortest_timeout_count():
    table = GangTable((Label(),))
    table.observe(member("a", minimum="1", timeout="60"))
    table.observe(member("b", minimum="3", timeout="30"))
    gang = table.of("a")
    assert (gang.minimum, gang.timeout, gang.is_complete) == (3, 30.0, False)
    table.forget("b")
    assert (gang.minimum, gang.timeout, gang.is_complete) == (1, 60.0, True)


def test_a_minimum_under_one_counts_as_one():
    table = GangTable((Label(),))
    table.observe(member("a", minimum="-4"))
    assert table.of("a").minimum == 1
    assert table.hold_message("a") == ""


def test_the_first_rule_that_has_a_key_applies():
    table = GangTable((Label(), Named()))
    table.observe(member("a"))
    table.observe(make_pod("b").info())
    assert table.of("a").rule == "pod-group"
    assert table.of("b").rule == "by-name"


def test_a_pod_that_no_rule_claims_is_in_no_gang():
    table = GangTable((Label(),))
    table.observe(make_pod("lone").info())
    assert table.of("lone") is None
    assert table.hold_message("lone") == ""


def test_a_member_moves_to_another_gang_with_its_labels():
    table = GangTable((Label(),))
    for name in ("a", "b"):
        table.observe(member(name, gang="old"))
    flipped = table.observe(member("b", gang="new", minimum="1"))
    assert {gang.key: gang.is_complete for gang in flipped} == {"old": False, "new": True}
    table.validate()


def test_a_rule_that_fails_holds_its_pod_and_says_why():
    table = GangTable((Broken(),))
    table.observe(member("a"))
    assert table.hold_message("a") == "gang: `minAvailable` is not a number"
    table.forget("a")
    assert table.hold_message("a") == ""


steps = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from(["x", "y", None, "gone"]), st.integers(-1, 4)), max_size=40
)


@given(steps)
def test_it_always_agrees_with_a_recount(history):
    table, pods = GangTable((Label(),)), {}
    for name, gang, minimum in history:
        if gang == "gone":
            table.forget(name)
            pods.pop(name, None)
        else:
            pods[name] = member(name, gang, str(minimum)) if gang else make_pod(name).info()
            table.observe(pods[name])
        table.validate()
        for uid, pod in pods.items():
            gang_name = pod.labels.get("gang")
            mates = [mate for mate in pods.values() if gang_name and mate.labels.get("gang") == gang_name]
            needed = max((max(1, int(mate.labels["min"])) for mate in mates), default=0)
            assert bool(table.hold_message(uid)) == (len(mates) < needed)
