"""Extenders are asked between the candidates of a preemption and the choice; what they say is held against what is
true when it comes."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.profile import Profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Action, NodeVictims
from policyengine.scheduler.extender import Extender
from policyengine.scheduler.messages import (
    ExtendersAnswered,
    NodeDeleted,
    PodDeleted,
    ProfileRemoved,
    ProfileReplaced,
    VictimsAnswered,
)
from tests.scheduler.asking import Asking
from tests.scheduler.driver import NAME, binds, conditions, deletions, node, pod, profile, victims

PREEMPTS = Extender("http://x", decides=False, preempts=True)
BOTH = Extender("http://x", preempts=True)


class AskingVictims(Asking):
    def leave(self, *nodes: str, **victims: str) -> list[Action]:
        """These nodes stay, with these victims where they are named: `n1="a b"`."""
        asked = self.about_victims.pop()
        left = {name: NodeVictims(tuple(uids.split()), 0) for name, uids in victims.items()}
        return self.send(VictimsAnswered(asked, left | {name: asked.victims[name] for name in nodes}))

    def fail(self) -> list[Action]:
        return self.send(VictimsAnswered(self.about_victims.pop(), error="it is down"))


def standing(name: str, on: str, priority: int = 0, cpu: str = "4") -> Any:
    return pod(name, cpu=cpu).priority(priority).node(on)


def asked_about(extender: Extender = PREEMPTS, profiles: tuple[Profile, ...] = ()) -> AskingVictims:
    """Two full nodes, of which n1's pod matters less, and a question about `high`."""
    driver = AskingVictims(extender, profiles=profiles)
    driver.see(node("n1"), node("n2"), standing("low", "n1"), standing("mid", "n2", 5))
    driver.see(pod("high", cpu="4").priority(10))
    assert victims(driver.cycle()) == []
    return driver


def message(actions: list[Action]) -> str:
    ((reason, text),) = conditions(actions)
    assert reason == "Unschedulable"
    return text.partition("Insufficient cpu. ")[2]


def test_the_pod_is_in_flight_until_the_extenders_have_answered() -> None:
    driver = asked_about()
    assert driver.places("high") == ["in flight"]
    assert driver.about_victims[0].victims == {"n1": NodeVictims(("low",), 0), "n2": NodeVictims(("mid",), 0)}
    assert driver.about_victims[0].pods["n2"] == {"mid": ("default", "mid")}
    assert victims(driver.leave("n1", "n2")) == ["low"]
    assert driver.places("high") == ["unschedulable"]


def test_a_node_that_the_extenders_take_away_is_not_cleared() -> None:
    assert victims(asked_about().leave("n2")) == ["mid"]


def test_nobody_goes_where_none_is_left_or_the_extender_fails() -> None:
    driver = asked_about()
    assert message(driver.leave()) == "preemption: no candidate node for preemption"
    driver = asked_about()
    assert message(driver.fail()) == "preemption: it is down"
    assert driver.places("high") == ["unschedulable"]


def test_an_extender_without_a_say_in_preemption_is_not_asked_about_victims() -> None:
    driver = AskingVictims(Extender("http://x"))
    driver.see(node("n1"), standing("low", "n1"), pod("high", cpu="4").priority(10))
    assert victims(driver.cycle()) == ["low"]


def test_a_victim_that_has_gone_meanwhile_need_not_go_and_a_pod_that_fits_by_then_is_placed() -> None:
    driver = asked_about()
    driver.send(PodDeleted("default", "low", "low"))
    assert binds(driver.leave("n1", "n2")) == {"high": "n1"}


def test_a_node_that_is_gone_by_then_is_not_cleared() -> None:
    driver = asked_about()
    driver.send(NodeDeleted("n1"))
    assert victims(driver.leave("n1", "n2")) == ["mid"]


def test_a_node_that_evictions_cannot_help_by_then_is_not_cleared() -> None:
    driver = asked_about().showing(node("n1", cpu="2"))
    assert victims(driver.leave("n1", "n2")) == ["mid"]


def test_whom_the_policy_keeps_stays_whatever_an_extender_says() -> None:
    text = 'policy "p" { scheduler "default-scheduler" preempt { victims: !("keep" in victim.labels) } }'
    driver = AskingVictims(PREEMPTS, profiles=(compile_policy(text),))
    driver.see(node("n1"), standing("low", "n1", cpu="2"), standing("kept", "n1", cpu="2").label("keep", "yes"))
    driver.see(pod("high", cpu="2").priority(10))
    driver.cycle()
    assert driver.about_victims[0].victims == {"n1": NodeVictims(("low",), 0)}
    assert message(driver.leave(n1="kept")) == "preemption: no candidate node for preemption"


def test_what_was_refused_before_the_question_stays_refused() -> None:
    driver = AskingVictims(BOTH)
    driver.see(node("n1"), node("n2"), standing("low", "n1", cpu="1"), standing("mid", "n2", 5, cpu="4"))
    driver.see(pod("high", cpu="1").priority(10))
    driver.cycle()
    refused = {"n1": ("http://x", "not here")}
    driver.send(ExtendersAnswered(driver.asked.pop(), unresolvable=refused))
    assert set(driver.about_victims[0].victims) == {"n2"}
    assert victims(driver.leave("n2")) == ["mid"]


def test_under_another_policy_the_pod_is_tried_anew_and_without_one_it_waits() -> None:
    driver = asked_about()
    old = driver.about_victims.pop()
    driver.send(ProfileReplaced(profile(policy_hash="another")))
    driver.send(VictimsAnswered(old, old.victims))
    assert len(driver.about_victims) == 1
    driver.send(ProfileRemoved(NAME))
    assert victims(driver.leave("n1")) == []
    driver.send(ProfileReplaced(profile(policy_hash="third")))
    driver.wait(60)
    driver.cycle()
    assert victims(driver.leave("n1")) == ["low"]


def test_the_answer_for_a_pod_that_is_gone_changes_nothing() -> None:
    driver = asked_about()
    driver.send(PodDeleted("default", "high", "high"))
    assert victims(driver.leave("n1")) == []
    assert driver.state._core.consulted == {}


def test_what_extenders_account_for_takes_the_place_of_the_policys_ignored_resources() -> None:
    own = 'policy "p" { scheduler "default-scheduler" use NodeResourcesFit { ignoredResources: ["x.io/own"] } }'
    for extenders, fits, waits in (
        ((), "own", "gpu"),
        ((Extender("u", unchecked=frozenset({"x.io/gpu"})),), "gpu", "own"),
    ):
        driver = AskingVictims(*extenders, profiles=(compile_policy(own),))
        driver.see(node("n1"), pod(fits).req(cpu="1", **{f"x.io/{fits}": "1"}))
        driver.see(pod(waits).req(cpu="1", **{f"x.io/{waits}": "1"}))
        driver.cycle()
        while driver.asked:
            driver.send(ExtendersAnswered(driver.asked.pop()))
        assert (driver.places(fits), driver.places(waits)) == (["binding"], ["unschedulable"])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["low", "high", "node", "gone", "delete", "answer", "some", "fail", "cycle", "wait", "policy"]),
        st.integers(0, 5),
    ),
    max_size=40,
)


class Asked(AskingVictims):
    """Whom extenders let go where: the nodes for each pod, and the victims of the last answer."""

    def __init__(self) -> None:
        super().__init__(BOTH)
        self.nodes: dict[str, set[str]] = {}
        self.victims: set[str] = set()

    def answer_one(self, what: str, number: int) -> list[Action]:
        """A question about nodes, or else about victims: some of them are left, or all, or the extender fails."""
        self.victims = set()
        if self.asked:
            at = number % len(self.asked)
            question = self.asked[at]
            against = dict.fromkeys(question.nodes[: number if what == "some" else 0], ("http://x", "no"))
            self.nodes[question.uid] = set(question.nodes) - against.keys()
            return self.answer(at, refused=against, error="down" if what == "fail" else "")
        if not self.about_victims:
            return []
        if what == "fail":
            return self.fail()
        left = list(self.about_victims[-1].victims)[: number if what == "some" else None]
        self.victims = {uid for name in left for uid in self.about_victims[-1].victims[name].pods}
        return self.leave(*left)


@settings(max_examples=80)
@given(STEPS)
def test_whatever_happens_meanwhile_pods_go_where_they_were_let_only_lesser_ones_make_room_and_none_is_lost(
    steps: list[tuple[str, int]],
) -> None:
    driver = Asked()
    alive: set[str] = set()
    made = 0
    for what, number in steps:
        actions: list[Action] = []
        if what in ("low", "high"):
            made += 1
            alive.add(f"p{made}")
            driver.see(pod(f"p{made}", cpu="2").priority(10 * number if what == "high" else 0))
        elif what == "node":
            driver.see(node(f"n{number}"))
        elif what == "gone":
            driver.send(NodeDeleted(f"n{number}"))
        elif what == "delete":
            alive.discard(f"p{number}")
            driver.send(PodDeleted("default", f"p{number}", f"p{number}"))
        elif what in ("answer", "some", "fail"):
            actions = driver.answer_one(what, number)
        elif what == "cycle":
            actions = driver.cycle(number + 1)
        elif what == "wait":
            actions = driver.wait(number * 3.0)
        elif what == "policy":
            driver.send(ProfileReplaced(profile(policy_hash=str(number))))
        view = driver.state.view
        for action in deletions(actions):
            assert action.uid in driver.victims
            assert view.pods[action.uid].priority < view.pods[action.preemptor].priority
        for uid, name in binds(actions).items():
            assert name in driver.nodes[uid]
            assert view.nodes.requested("cpu")[view.nodes.row_of[name]] <= 4000
    assert {uid for uid in alive if driver.state.place(uid) == "unknown"} == set()
