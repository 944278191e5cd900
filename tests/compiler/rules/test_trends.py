"""Whether placing pods may help a pod that a filter refused, as its registrations say; what they say is true."""

from __future__ import annotations

from random import Random

import pytest

from policyengine.cluster.view import ClusterView
from policyengine.compiler.rules.trends import Trends
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE
from policyengine.framework.profile import Profile
from policyengine.policy_compiler import PolicyError, compile_policy
from policyengine.scheduler.messages import PodDeleted
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.scheduler.driver import Driver, binds

SHARE = "(node.used.cpu + pod.requests.cpu) / node.allocatable.cpu"
ONLY_LESS_HELPS = (
    f"{SHARE} <= 0.9",
    f"!({SHARE} > 0.9)",
    f"1.0 - {SHARE} >= 0.1",
    "node.free.memory - pod.requests.memory >= 1Gi",
    "pod.requests.cpu * 2 <= node.free.cpu",
    "node.podCount < 10 && node.free.cpu > 0",
    "node.ready || node.podCount < 10",
    'node.free[?"x/y"].orValue(0) >= 2',
    'node.used[?"x/y"].orValue(0) <= 2',
    "min(node.free.cpu / 1m, node.free.memory / 1Mi) > 3.0",
    "clamp(node.podCount, 2, 7) < 5",
    "ratio(node.used.memory, node.allocatable.memory) < 0.5",
    '("big" in node.labels ? node.podCount : node.podCount + 5) < 9',
    "-node.podCount > -7",
    "node.used.cpu * 1.5 < node.allocatable.cpu",
    'node.labels[?"a"].orValue("") == "b"',
    "node.taints.size() == 0 && nodes.exists(n, n.ready)",
)


MORE_MAY_HELP = (
    "node.podCount > 0",
    "!(node.podCount == 0)",
    "node.podCount != 1",
    "node.free.cpu < 1",
    "node.used.cpu - node.free.cpu > 0",
    "node.podCount * pod.priority < 10",
    "node.podCount * -1 < -3",
    "-1 * node.podCount < -3",
    "node.free.memory + pod.requests.memory > 0",
    "100 * node.podCount / (node.podCount - 3) < 5",
    'node.used[?"x/y"].orValue(5) <= 2',
    "node.pods.size() < 3",
    "node.nominated.size() == 0",
    "nodes.exists(n, n.free.cpu > 1)",
    'node.domain("rack").pods.size() < 5',
    "cluster.pendingCount < 3",
    "(node.podCount > 2 ? 5 : 50) < 20",
)


def filter_of(body: str, params: dict[str, object] | None = None) -> Profile:
    return compile_policy(f'policy "p" {{ scheduler "s" base none {body} }}', params=params)


def wakes(profile: Profile) -> tuple[bool, bool]:
    """Whether a pod that is placed, and one that goes, wake whom the filter refused."""
    (rule,) = profile.filters
    events = [one.event for one in rule.events_to_register()]
    placed, gone = (any(one.matches(event) for one in events) for event in (ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE))
    return placed, gone


@pytest.mark.parametrize("condition", ONLY_LESS_HELPS)
def test_who_waits_for_room_is_not_woken_by_what_takes_room(condition: str) -> None:
    reads_use = any(word in condition for word in ("used", "free", "podCount"))
    assert wakes(filter_of(f'filter "f" {{ require {condition} }}')) == (False, reads_use)


@pytest.mark.parametrize("condition", MORE_MAY_HELP)
def test_where_placing_may_help_or_nobody_knows_it_wakes(condition: str) -> None:
    assert wakes(filter_of(f'filter "f" {{ require {condition} }}'))[0]


def test_when_and_on_error_and_lets_and_params_count() -> None:
    placed = {
        'filter "f" when pod.priority > 3 { require node.free.cpu > 1 }': False,
        'filter "f" when cluster.podCount > 3 { require node.free.cpu > 1 }': True,
        'filter "f" { require node.free.cpu > 1 require node.podCount > 0 }': True,
        'filter "f" { require node.podCount + 9223372036854775807 > 0 on error true }': True,
        'filter "f" { require node.free.cpu > 1 on error false }': False,
        'let n = node.podCount let m = n + n filter "f" { require m < 7 }': False,
        'let n = node.podCount let m = 3 - n filter "f" { require m < 7 }': True,
        'function twice(x: int): int = x + x filter "f" { require twice(node.podCount) < 9 }': False,
        'param k: int = 2 range [-9, 9] filter "f" { require node.podCount * k < 7 }': False,
    }
    assert {body: wakes(filter_of(body))[0] for body in placed} == placed
    signed = 'param k: int = 2 range [-9, 9] filter "f" { require node.podCount * k < 7 }'
    assert wakes(filter_of(signed, {"k": -2}))[0]


# --- held against what placing pods does ---------------------------------------------------------------------

LEAVES = {
    "cpu": ("node.free.cpu", "node.used.cpu", "node.allocatable.cpu", "pod.requests.cpu", "500m", "4611686018427387"),
    "memory": ("node.free.memory", "node.used.memory", "node.allocatable.memory", "pod.requests.memory", "1Gi", "4Ei"),
    "int": (
        "node.podCount", 'node.free[?"x/y"].orValue(0)', 'node.used[?"x/y"].orValue(0)', 'node.used[?"x/y"].orValue(2)',
        'node.free[?"x/y"].orValue(-1)', "0", "-2", "3", "9223372036854775807", "pod.priority", "k",
    ),
    "double": ("0.5", "-1.5", "0.0", "2.0", "d"),
}  # fmt: skip


def number(chance: Random, kind: str, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(LEAVES[kind])
    one, other = (number(chance, kind, depth - 1) for _ in range(2))
    quantity = chance.choice(("cpu", "memory"))
    a, b = (number(chance, quantity, depth - 1) for _ in range(2))
    count, factor = number(chance, "int", depth - 1), number(chance, "double", depth - 1)
    each = [f"({one} + {other})", f"({one} - {other})", f"min({one}, {other})", f"max({one}, {other})", f"-({one})"]
    each += [f"clamp({one}, {other}, {chance.choice(LEAVES[kind])})", f'("a" in node.labels ? {one} : {other})']
    own = {
        "double": [f"({a} / {b})", f"ratio({a}, {b})", f"({one} * {other})", f"({one} / {other})", f"double({count})"],
        "int": [f"({one} * {other})", f"({one} / {other})", f"int({factor})", f"floor({factor})", f"round({factor})"],
    }
    scaled = [f"({one} * {count})", f"({one} * {factor})", f"({one} / {count})", f"({one} / {factor})"]
    return chance.choice([*each, *own.get(kind, scaled)])


def condition(chance: Random, depth: int) -> str:
    if depth and chance.random() < 0.5:
        one, other = (condition(chance, depth - 1) for _ in range(2))
        return chance.choice(
            (f"!({one})", f"({one} && {other})", f"({one} || {other})", f'("a" in node.labels ? {one} : {other})')
        )
    kind = chance.choice(tuple(LEAVES))
    sign = chance.choice(("<", "<=", ">", ">=", "==", "!="))
    return f"{number(chance, kind, 2)} {sign} {number(chance, kind, chance.randrange(3))}"


def drawn_filter(chance: Random) -> Profile | None:
    when = chance.choice(
        ("", "", "when pod.priority > 0", "when nodes.exists(n, n.free.cpu > 1)", "when pods.size() > 3")
    )
    on_error = chance.choice(("", "", "on error false", "on error true"))
    body = f"param k: int = {chance.choice((-2, 0, 3))} param d: double = {chance.choice((-0.5, 0.0, 1.5))}"
    try:
        return filter_of(f'{body} filter "f" {when} {{ require {condition(chance, 1)} {on_error} }}')
    except PolicyError:
        return None


NODES = ("n1", "n2", "n3")
HUGE = ("4611686018427387", "4Ei")


def drawn_pod(chance: Random, name: str) -> PodBuilder:
    cpu, memory = (chance.choice(("0", "1", "3", large)) if chance.random() < 0.5 else "1" for large in HUGE)
    return (
        make_pod(name)
        .req(cpu=cpu, memory=memory, **{"x/y": chance.choice(("0", "1", "2"))})
        .priority(chance.randrange(-2, 3))
    )


def drawn_node(chance: Random, name: str) -> NodeBuilder:
    amounts = {"cpu": chance.choice(("0", "4", HUGE[0])), "memory": chance.choice(("0", "8Gi", HUGE[1]))}
    if chance.random() < 0.5:
        amounts["x/y"] = "2"
    node = make_node(name).capacity(pods="110", **amounts)
    return node.label("a", "b") if chance.random() < 0.5 else node


def passes(profile: Profile, pod: PodBuilder, view: ClusterView) -> set[str]:
    """The nodes that the filter lets the pod onto, asked anew."""
    return {view.nodes.names[row] for row in Evaluator(profile).filter(pod.info(), view.snapshot()).feasible}


def wrongly_passed(seed: int) -> tuple[bool, bool]:
    """Whether a filter says that placing helps nobody, and whether that is untrue."""
    chance = Random(seed)
    profile = drawn_filter(chance)
    if profile is None or wakes(profile)[0]:
        return False, False
    view, pod = ClusterView(), drawn_pod(chance, "p")
    for name in NODES:
        view.add_or_update_node(drawn_node(chance, name).build())
    before = passes(profile, pod, view)
    for number in range(8):
        view.add_or_update_pod(drawn_pod(chance, f"q{number}").node(chance.choice(NODES)).build())
        after = passes(profile, pod, view)
        if after - before:
            return True, True
        before = after
    return True, False


@pytest.mark.parametrize("first", range(0, 2000, 1000))
def test_no_pod_that_is_placed_lets_another_pass_where_a_filter_says_that_none_does(first: int) -> None:
    found = {seed: wrongly_passed(seed) for seed in range(first, first + 500)}
    assert [seed for seed, (_, is_wrong) in found.items() if is_wrong] == []
    assert sum(claimed for claimed, _ in found.values()) > 50


def test_a_filter_that_claims_it_wrongly_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trends, "gets_truer", lambda self, rule: False)
    assert any(wrongly_passed(seed)[1] for seed in range(200))


# --- and in a scheduler --------------------------------------------------------------------------------------


def stranded(seed: int) -> set[str]:
    """Who waits for an event in a scheduler at rest, and would pass if it were asked."""
    chance = Random(seed)
    profile = drawn_filter(chance)
    if profile is None:
        return set()
    driver, pods = Driver(profile), dict[str, PodBuilder]()
    driver.validates = False
    driver.see(*(drawn_node(chance, name) for name in NODES))
    for number in range(12):
        there = sorted(pod.uid for pod in driver.state.view.pods.values() if pod.node_name)
        if there and chance.random() < 0.4:
            driver.send(PodDeleted("default", pods[chance.choice(there)].build().metadata.name, ""))
        else:
            pod = pods[f"p{number}"] = drawn_pod(chance, f"p{number}")
            driver.see(pod.scheduler("s") if chance.random() < 0.7 else pod.node(chance.choice(NODES)))
        come_to_rest(driver, pods)
        view = driver.state.view
        waiting = [uid for uid in pods if driver.state.place(uid) == "unschedulable"]
        if found := {uid for uid in waiting if passes(profile, pods[uid], view)}:
            return found
    return set()


def come_to_rest(driver: Driver, pods: dict[str, PodBuilder]) -> None:
    """Every pod that may be tried is, and the watch shows what was bound."""
    for _ in range(20):
        driver.wait(11.0)
        bound = binds(driver.cycle())
        for uid, node in bound.items():
            driver.see(pods[uid].node(node))
        if not bound and not driver.state.ready:
            return


def test_nobody_waits_who_would_pass_now() -> None:
    assert {seed: found for seed in range(100) if (found := stranded(seed))} == {}


def test_a_wake_up_that_is_lost_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trends, "gets_truer", lambda self, rule: False)
    assert any(stranded(seed) for seed in range(400))
