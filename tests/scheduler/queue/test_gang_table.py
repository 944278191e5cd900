from hypothesis import given
from hypothesis import strategies as st

from policyengine.scheduler.queue.gang_table import GangTable
from tests.builders import make_pod
from tests.scheduler.driver import Label
from tests.scheduler.invariants import validate_gangs


def member(name, gang="g", minimum="2", timeout="60"):
    return make_pod(name).labels({"gang": gang, "min": minimum, "timeout": timeout}).info()


class Broken(Label):
    def minimum(self, pod):
        raise ValueError("`minAvailable` is not a number")


class Named(Label):
    name = "by-name"

    def key(self, pod):
        return "everybody"


def test_the_largest_minimum_and_the_shortest_timeout_count():
    table = GangTable((Label(),))
    table.observe(member("a", minimum="1", timeout="60"))
    table.observe(member("b", minimum="3", timeout="30"))
    gang = table.of("a")
    assert (gang.minimum, gang.timeout, gang.is_complete) == (3, 30.0, False)
    table.forget("b")
    assert (gang.minimum, gang.timeout, gang.is_complete) == (1, 60.0, True)


def test_the_first_rule_that_has_a_key_applies():
    table = GangTable((Label(), Named()))
    table.observe(member("a"))
    table.observe(make_pod("b").info())
    assert table.of("a").rule == "pod-group"
    assert table.of("b").rule == "by-name"


def test_a_rule_that_fails_holds_its_pod_and_says_why():
    table = GangTable((Broken(),))
    table.observe(member("a"))
    assert table.hold_message("a") == "gang: `minAvailable` is not a number"
    table.forget("a")
    assert table.hold_message("a") == ""


steps = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from(["x", "y", None, "gone"]), st.integers(-1, 4)), max_size=40
)


def naive(pods):
    """Gang -> (its members, how many it takes), counted anew."""
    found = {}
    for uid, pod in pods.items():
        if gang := pod.labels.get("gang"):
            members, minimum = found.get(gang, (set(), 1))
            found[gang] = (members | {uid}, max(minimum, int(pod.labels["min"])))
    return found


@given(steps)
def test_it_always_agrees_with_a_recount(history):
    table, pods = GangTable((Label(),)), {}
    for name, gang, minimum in history:
        before = naive(pods)
        if gang == "gone":
            flipped = table.forget(name)
            pods.pop(name, None)
        else:
            pods[name] = member(name, gang, str(minimum)) if gang else make_pod(name).info()
            flipped = table.observe(pods[name])
        validate_gangs(table)
        now = naive(pods)
        complete, was = ({key for key, (uids, least) in of.items() if len(uids) >= least} for of in (now, before))
        told = {one.key: one.is_complete for one in flipped if one.key in now}
        assert told == {key: key in complete for key in told}
        assert (complete ^ was) & now.keys() <= told.keys()
        for uid, pod in pods.items():
            uids, least = now.get(pod.labels.get("gang"), ((), 0))
            assert (table.of(uid) is None) == (not uids)
            missing = f"gang pod-group: {len(uids)} of {least} members exist"
            assert table.hold_message(uid) == (missing if len(uids) < least else "")
