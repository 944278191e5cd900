"""What the pages say of a scheduler: the same as `/debug` and `explain`, in words and links."""

import html
import json
import re

import pytest

from policyengine.policy_compiler import compile_text
from policyengine.scheduler.messages import BindSucceeded, ProfileReplaced
from policyengine.server.pages.overview import recent
from policyengine.server.pages.policy import uses_of
from policyengine.server.pages.waiting import REASONS, REST, by_reason
from tests.builders import make_node
from tests.scheduler.driver import Driver, node, pod
from tests.scheduler.test_rollout import SHADOW, Rehearsal, only, policy
from tests.server.pages.scenes import pages

ZONE = "topology.kubernetes.io/zone"


def words(text: str) -> str:
    """What a reader sees of a page."""
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def loaded(text: str) -> Driver:
    driver = Driver()
    driver.send(ProfileReplaced(compile_text(text, file="p.policy").profiles[0]))
    return driver


def scene() -> Driver:
    """Two of four pods placed: on the larger node, one by one."""
    driver = Driver()
    driver.see(node("n1", cpu="4").label(ZONE, "a"), node("n2", cpu="8").label(ZONE, "b").unschedulable())
    driver.see(node("n3", cpu="2").label(ZONE, "a"))
    driver.see(pod("small", cpu="2"), pod("other", cpu="2"), pod("big", cpu="64"), pod("big-too", cpu="64"))
    for _ in range(4):
        driver.cycle()
    driver.send(BindSucceeded("small"))
    return driver


async def test_the_overview_counts_what_waits_and_leads_to_it() -> None:
    driver = scene()
    async with pages(driver.state, driver.now + 30) as site:
        text = await site.get("")
        assert "bound in the last minute 2" in words(text)
        assert "nodes 3 0 not ready, 1 cordoned" in words(text) or "nodes 3 3 not ready, 1 cordoned" in words(text)
        link = html.unescape(re.findall(r'href="(pods\?[^"]*unschedulable[^"]*reason=[^"]*)">2</a> ', text)[0])
        found = await (await site.session.get(f"/ui/{link}")).text()
        assert "default/big" in found and "default/big-too" in found and "default/small" not in found


async def test_the_picture_of_the_nodes_has_each_of_them_by_group() -> None:
    driver = scene()
    async with pages(driver.state, driver.now) as site:
        for by, wanted in (("cpu", {"n1": 100, "n2": 0, "n3": 0}), ("rule:NodeUnschedulable", {"n1": 0, "n2": 100})):
            text = await site.get("", by=by)
            data = json.loads(re.findall(r'id="heat_data" data-live>(.*?)</script>', text)[0])
            assert data["groups"] == ["a", "a", "b"]
            assert wanted.items() <= dict(zip(data["names"], data["values"], strict=True)).items()


async def test_amounts_of_a_group_are_added_beyond_64_bits() -> None:
    driver = Driver()
    driver.see(
        *(make_node(name).capacity(cpu="4", memory="4Ei", pods="10").label(ZONE, "a") for name in ("n1", "n2", "n3"))
    )
    async with pages(driver.state, driver.now) as site:
        assert "of 12288 PiB" in words(await site.get(""))


async def test_of_a_rule_that_is_gone_nothing_is_told() -> None:
    driver = scene()
    async with pages(driver.state, driver.now) as site:
        text = await site.get("", by="rule:gone")
    assert "no policy has a filter `gone`" in text
    assert json.loads(re.findall(r'id="heat_data" data-live>(.*?)</script>', text)[0])["values"] == [-1, -1, -1]


async def test_a_scheduler_s_name_is_shown_as_far_as_any_is_served() -> None:
    driver = Driver()
    driver.see(pod("p").scheduler("x" * 1_000_000))
    async with pages(driver.state, driver.now) as site:
        assert len(await site.get("")) < 20_000


async def test_of_thousands_of_gates_the_first_are_named() -> None:
    gated = pod("p")
    for number in range(3000):
        gated = gated.gate(f"example.com/{number}")
    driver = Driver()
    driver.see(gated)
    async with pages(driver.state, driver.now) as site:
        text = await site.get("")
    assert "example.com/19] and 2980 more" in text
    assert len(text) < 20_000


async def test_a_pod_tells_what_every_rule_says_of_every_node() -> None:
    driver = scene()
    async with pages(driver.state, driver.now) as site:
        text = words(await site.get("pods/default/big"))
        assert "place unschedulable" in text and "0 of 3 nodes can hold it" in text
        assert "n2 refuses node(s) were unschedulable refuses Insufficient cpu" in text
        assert "n1 passes refuses Insufficient cpu" in text
        only = words(await site.get("pods/default/big", rule="NodeUnschedulable"))
        assert "n2 refuses" in only and "n1 passes" not in only
        assert "Nothing of what was tried helps" in text or "Look for the fewest changes" in text


async def test_a_pod_with_a_node_tells_why_it_is_there() -> None:
    driver = scene()
    async with pages(driver.state, driver.now) as site:
        text = await site.get("pods/default/small")
        assert "Why it is on n" in text and "What happened" in text
        placed = driver.state.view.find_pod("default", "small")
        assert placed is not None and f"reserved</strong> <span>node {placed.node_name}" in text
        assert '<svg class="stack"' in text


async def test_what_would_help_is_a_command_to_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyengine.server.pages.pod.SECONDS", 600.0)  # a machine with much else to do
    driver = Driver()
    driver.see(node("n1").label("disk", "hdd"), pod("p").node_selector({"disk": "ssd"}))
    driver.cycle()
    async with pages(driver.state, driver.now) as site:
        assert "kubectl" not in await site.get("pods/default/p")
        text = await site.get("pods/default/p", remedies="1")
        command = re.findall(r'<code id="(command-\d-1)">([^<]*)</code><button type="button" data-copy="\1">', text)
        assert [one[1] for one in command] == ["kubectl label --overwrite node n1 disk=ssd"]


async def test_what_would_help_is_sought_for_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyengine.server.pages.pod.SECONDS", -1.0)
    driver = scene()
    async with pages(driver.state, driver.now) as site:
        text = words(await site.get("pods/default/big", remedies="1"))
    assert "Nothing was found in the time there is for it; ask this way: policyengine explain default/big" in text


async def test_a_node_tells_what_runs_and_who_is_refused() -> None:
    driver = scene()
    async with pages(driver.state, driver.now) as site:
        text = words(await site.get("nodes/n3"))
        assert "default/big 1 NodeResourcesFit Insufficient cpu" in text
        assert "Nothing." in text
        assert (await site.answer("nodes/none"))[0] == 404


async def test_a_list_is_sorted_and_turned_by_links_alone() -> None:
    driver = Driver()
    driver.see(*(node(f"n{number:03}", cpu=f"{number + 1}") for number in range(250)))
    async with pages(driver.state, driver.now) as site:
        text = await site.get("nodes", sort="-node", page="2")
        names = re.findall(r'<a href="nodes/(n\d+)"', text)
        assert names == [f"n{number:03}" for number in range(149, 49, -1)]
        assert "part 2 of 3" in text and "page=3" in text
        assert re.findall(r'<a href="nodes/(n\d+)"', await site.get("nodes", page="99"))[-1] == "n249"


POLICY = """\
policy "p" {
  scheduler "s"
  base filters
  filter "not n1" when pod.labels[?"free"].orValue("") == "" { require node.name != "n1" else "n1 is taken" }
  score "larger" weight 5 = clamp(node.allocatable.cpu / 1m / 100.0, 0.0, 100.0)
  test "goes elsewhere" { given node "n1" {} given pod "p" {} expect "p" rejected by "not n1" }
}
"""


async def test_a_policy_shows_beside_each_rule_what_became_of_it() -> None:
    driver = loaded(POLICY)
    driver.see(node("n1", cpu="8"), node("n2", cpu="4"), node("n3", cpu="2"))
    driver.see(pod("a").scheduler("s"), pod("b").scheduler("s"))
    driver.cycle()
    driver.cycle()
    profile = next(one for one in driver.state.profiles if one.name == "p")
    use = uses_of(driver.state, profile, driver.now)
    assert (use["not n1"].placements, use["not n1"].kept_off) == (2, 2)
    assert (use["larger"].scored, use["larger"].tipped) == (2, 2)
    assert uses_of(driver.state, profile, driver.now + 3601)["larger"].scored == 0
    async with pages(driver.state, driver.now) as site:
        text = await site.get("policies/s")
        assert '<span class="keyword">filter</span> <span class="string">&#34;not n1&#34;</span>' in text
        assert "kept 2 nodes from 2 pods" in text and "decided about 2 of them" in text
        assert "see what they cover" in text
        covered = words(await site.get("policies/s", coverage="1"))
        assert re.search(r"see \d+ of \d+ outcomes tests in its text: 1", covered), covered
        assert "no test sees" in covered


async def test_a_policy_of_a_mebibyte_is_shown_as_far_as_can_be() -> None:
    filler = "\n".join(f"// {'x' * 90} {number}" for number in range(9_900))
    driver = loaded(f'policy "p" {{ scheduler "s" }}\n{filler}\n')
    async with pages(driver.state, driver.now) as site:
        text = await site.get("policies/s")
        assert "shown without colours" in text and "more lines are not shown" in text
        assert len(text) < 2_000_000


async def test_policies_and_their_versions_are_listed_with_their_age() -> None:
    driver = loaded('policy "one" { scheduler "s" }')
    driver.now += 3600.0
    driver.send(ProfileReplaced(compile_text('policy "two" { scheduler "s" }').profiles[0]))
    async with pages(driver.state, driver.now + 90) as site:
        assert "s two" in words(await site.get("policies")) and "1 min 30 s" in await site.get("policies")
        versions = words(await site.get("policies/s")).partition("Versions")[2]
        assert versions.index("two") < versions.index("one")
        assert (await site.answer("policies/none"))[0] == 404


async def test_quotas_gangs_and_candidates_are_on_the_overview() -> None:
    driver = loaded(
        'policy "p" { scheduler "s"\n'
        '  quota "team" by pod.labels[?"team"].orValue("") { guarantee: {cpu: 1} limit: {cpu: 2} }\n'
        '  gang "crew" when has(pod.labels.crew) { key: pod.labels.crew min: 3 timeout: 60s } }'
    )
    driver.see(node("n1", cpu="8"), pod("a", cpu="1").labels({"team": "red"}).scheduler("s"))
    driver.see(pod("c1").labels({"crew": "rowers"}).scheduler("s"))
    driver.cycle()
    async with pages(driver.state, driver.now) as site:
        text = words(await site.get(""))
        assert "team red cpu 1 1 2 50 %" in text
        assert "rowers crew 1 gang crew: 1 of 3 members exist" in text


async def test_a_pod_that_is_refused_as_a_whole_tells_what_the_other_rules_say_too() -> None:
    driver = loaded('policy "p" { scheduler "s" quota "team" when pod.namespace != "" { limit: {cpu: 1} } }')
    driver.see(node("n1"), node("n2").unschedulable(), pod("p", cpu="2").scheduler("s"))
    driver.cycle()
    async with pages(driver.state, driver.now) as site:
        text = words(await site.get("pods/default/p"))
        assert "team refuses it as a whole" in text
        assert "n2 refuses node(s) were unschedulable" in text and "n1 passes" in text
    driver = Driver()
    driver.see(node("n1"), pod("p", cpu="much"))
    driver.cycle()
    async with pages(driver.state, driver.now) as site:
        assert "its spec refuses it as a whole" in words(await site.get("pods/default/p", remedies="1"))


NASTY = ("", "\x00", "-", "%", "9" * 400, "-total", "1e5", "é" * 300, "../..", "rule:", "{{ 7*7 }}", "' or 1")


@pytest.mark.parametrize("path", ["", "pods", "pods/default/big", "nodes", "nodes/n1", "policies/default-scheduler"])
async def test_whatever_is_asked_for_is_answered(path: str) -> None:
    driver = scene()
    together = (("label", "value", "q"), ("place", "scheduler", "reason"), ("node", "show", "rule"))
    async with pages(driver.state, driver.now) as site:
        for value in NASTY:
            for names in (*(("by",), ("group",), ("sort",), ("page",)), *together):
                status, text = await site.answer(path, **dict.fromkeys(names, value))
                assert status == 200, (names, value)
                assert text.endswith("</html>")


async def test_a_candidate_is_shown_with_its_agreement_budget_and_what_differs() -> None:
    run = Rehearsal(policy("live", only("n1")), policy("new", only("n2", name="moved")), SHADOW)
    run.see(pod("a"), pod("b"))
    run.cycle()
    async with pages(run.state, run.now) as site:
        text = words(await site.get(""))
        assert "Candidates" in text and "0.0 % of 2 compared" in text
        assert "2 moved" in text and "shadow" in text


def test_reasons_beyond_the_most_frequent_are_counted_together() -> None:
    driver = Driver()
    waiting = [("s0", reason) for reason in range(REASONS + 3) for _ in range(3 if reason < REASONS else 1)]
    for number, (scheduler, reason) in enumerate([*waiting, ("s1", 0)]):
        driver.see(pod(f"p{number}").scheduler(scheduler).condition("PodScheduled", "False", message=f"why {reason}"))
    first, other = by_reason(driver.state)
    assert (first["scheduler"], first["place"], first["count"]) == ("s0", "unserved", 3 * REASONS + 3)
    assert first["reasons"] == [*((f"why {reason}", 3) for reason in range(REASONS)), (REST, 3)]
    assert (other["scheduler"], other["reasons"]) == ("s1", [("why 0", 1)])


@pytest.mark.parametrize(("later", "bound"), [(0.0, 2), (59.0, 2), (61.0, 0)])
def test_what_is_recent_is_of_the_last_minute(later: float, bound: int) -> None:
    driver = scene()
    assert recent(driver.state, driver.now + later)["bound"] == bound
