"""What the verbs answer beyond the recorded traffic: pods on nodes, unknown nodes, bad bodies."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.http.client import Client
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_files, compile_policy
from policyengine.server.extender import known_cluster
from policyengine.server.extender.known_cluster import ExtenderCluster, WatchedCluster
from policyengine.server.extender.policy_rules import PolicyRules, own_rules
from policyengine.server.extender.verbs import VERBS, Verbs
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.sandbox import create
from tests.builders import make_node
from tests.docs.even_nodes import EVEN_NODES
from tests.kube.virtual_time import VirtualClock, run
from tests.server.extender.recorded import At, Known, ask, verbs

ROOM = """policy "room" {
  filter "spare" {
    require node.free.memory - pod.requests.memory >= 2Gi else "has {node.free.memory}"
  }
  score "pack" weight 5 = 100 * ratio(node.used.cpu + pod.requests.cpu, node.allocatable.cpu)
}"""


def node(name: str, **labels: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, cpu: str = "1", memory: str = "1Gi", on: str = "") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i", "resources": resources}]},
    }


def asking(*names: str, **fields: Any) -> dict[str, Any]:
    return {"Pod": pod("p"), "NodeNames": list(names), **fields}


async def test_a_watched_cluster_sees_what_stands_on_the_nodes() -> None:
    answering = verbs(Known([node("a"), node("b")], [pod("x", "1", "6Gi", on="a")]), ROOM)
    answer = await ask(answering, "filter", asking("a", "b"))
    assert answer["NodeNames"] == ["b"]
    assert answer["FailedNodes"] == {"a": "spare: has 2Gi"}
    assert await ask(answering, "prioritize", asking("b", "a")) == [
        {"Host": "b", "Score": 3},  # 25 of 100: half a tenth goes up
        {"Host": "a", "Score": 5},
    ]


@pytest.mark.parametrize(("share", "score"), [(0, 0), (4, 0), (5, 1), (44, 4), (45, 5), (54, 5), (95, 10), (100, 10)])
async def test_a_score_is_rounded_half_away_from_zero_to_the_nearest_tenth(share: int, score: int) -> None:
    answering = verbs(Known([node("a")]), f'policy "p" {{ score "s" weight 7 = {share} }}')
    assert await ask(answering, "prioritize", asking("a")) == [{"Host": "a", "Score": score}]


async def test_a_line_a_decision_tells_each_node_s_values(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "policyengine")
    answering = verbs(Known([node("a"), node("b")], [pod("x", "1", "6Gi", on="a")]), ROOM)
    await ask(answering, "filter", asking("a", "b"))
    await ask(answering, "prioritize", asking("b", "a"))
    assert [record.getMessage() for record in caplog.records] == [
        "room: filter of pod default/p: 1 of 2 nodes; pass: b; refused: a (spare: has 2Gi)",
        "room: prioritize of pod default/p: a 5 (pack 50), b 3 (pack 25)",
    ]


async def test_of_many_nodes_a_line_tells_the_best_hundred(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "policyengine")
    names = [f"n{number}" for number in range(150)]
    answering = verbs(Known([node(name) for name in names], [pod("x", "2", on="n149")]), ROOM)
    await ask(answering, "prioritize", asking(*names))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("room: prioritize of pod default/p: n149 8 (pack 75), n0 3")
    assert line.endswith(", and 50 more")


def asked_of_watched(policy: str, prepare: Callable[[Client], Awaitable[Any]]) -> Any:
    """What the policy's filter answers about node `a` of a server that was prepared, and is watched."""

    async def work() -> Any:
        clock = VirtualClock()
        transport = MemoryTransport(ApiServer(clock), user=ADMIN)
        client = Client(transport)
        await create(transport, "/api/v1/nodes", make_node("a").json())
        await prepare(client)
        rules = PolicyRules(compile_policy(policy))
        cluster = WatchedCluster(client, clock, Random(0), [rules.profile])
        following = asyncio.create_task(cluster.run())
        await cluster.synced.wait()
        answer = await ask(Verbs(rules, cluster, clock, None), "filter", asking("a"))
        following.cancel()
        return answer

    return run(work())


def test_a_pod_that_is_asked_about_knows_its_namespace() -> None:
    async def prepare(client: Client) -> None:
        await client.call("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"team": "x"}}})

    team = 'let team = pod.namespaceLabels[?"team"].orValue("")'
    own = 'filter "own" { require team == node.name else "is not {team}" }'
    answer = asked_of_watched(f'policy "p" {{ base none {team} {own} }}', prepare)
    assert answer["FailedAndUnresolvableNodes"] == {"a": "own: is not x"}


def test_the_first_list_holds_the_pods_that_ended_within_the_last_hour() -> None:
    async def prepare(client: Client) -> None:
        await client.call("POST", "/api/v1/namespaces/default/pods", pod("done", on="a"))
        await client.patch_pod_status("default", "done", {"phase": "Failed"})

    calm = 'filter "calm" { require node.finished.size() == 0 else "a pod ended here" }'
    answer = asked_of_watched(f'policy "p" {{ base none {calm} }}', prepare)
    assert answer["FailedNodes"] == {"a": "calm: a pod ended here"}


async def test_a_node_nobody_knows_is_refused_by_name_and_scores_nothing() -> None:
    answering = verbs(Known([node("a")]), ROOM)
    answer = await ask(answering, "filter", asking("ghost", "a"))
    assert answer["NodeNames"] == ["a"]
    assert answer["FailedNodes"] == {"ghost": "node `ghost` is not known to the extender"}
    assert (await ask(answering, "prioritize", asking("ghost", "a")))[0] == {"Host": "ghost", "Score": 0}


async def test_preempt_takes_the_victims_off_the_node_before_it_asks_the_rules() -> None:
    answering = verbs(Known([node("a"), node("b")], [pod("x", "1", "6Gi", on="a"), pod("y", "1", "6Gi", on="b")]), ROOM)
    victims = {
        "a": {"Pods": [{"UID": "uid-x"}], "NumPDBViolations": 1},
        "b": {"Pods": [], "NumPDBViolations": 0},
    }
    answer = await ask(answering, "preempt", {"Pod": pod("p"), "NodeNameToMetaVictims": victims})
    assert answer == {"NodeNameToMetaVictims": {"a": victims["a"]}}
    assert (await ask(answering, "filter", asking("a", "b")))["NodeNames"] == []


async def test_no_score_rule_that_speaks_means_no_preference() -> None:
    answering = verbs(Known([node("a")]), 'policy "p" { score "s" weight 3 when pod.priority > 5 = 100 }')
    assert await ask(answering, "prioritize", asking("a")) == [{"Host": "a", "Score": 0}]


async def test_the_base_of_a_policy_is_kube_schedulers_business() -> None:
    full = node("a") | {"spec": {"unschedulable": True}}
    answering = verbs(Known([full]), 'policy "p" { base kubernetes }')
    assert (await ask(answering, "filter", asking("a")))["NodeNames"] == ["a"]


async def test_a_plugin_that_kube_scheduler_does_not_have_is_asked_as_a_rule_is() -> None:
    with_even = {**IN_TREE, EVEN_NODES.name: replace(EVEN_NODES, in_base=False)}
    text = 'policy "p" { use EvenNodes weight 3 { allowed: [2, 4] } score "flat" weight 1 = 100 }'
    [profile] = compile_files([Source("p", text)], None, with_even).profiles
    answering = Verbs(
        PolicyRules(profile), Known([node("n1"), node("n2"), node("n4")], [pod("x", on="n4")]), At(), None
    )
    found = await ask(answering, "filter", asking("n1", "n2", "n4"))
    assert found["NodeNames"] == ["n2", "n4"]
    assert found["FailedAndUnresolvableNodes"] == {"n1": "EvenNodes: the node's number is not allowed"}
    scores = {one["Host"]: one["Score"] for one in await ask(answering, "prioritize", asking("n2", "n4"))}
    assert scores == {"n2": 10, "n4": 10}  # 100 and 99, three times, and 100


def test_plugins_of_the_base_are_kube_schedulers_by_their_names() -> None:
    in_base = compile_policy('policy "p" { }')
    names = {plugin.name for plugin in (*in_base.filters, *(plugin for plugin, _ in in_base.scores))}
    assert names <= IN_TREE.keys()
    own = own_rules(in_base)
    assert own.filters == () and own.scores == ()


async def test_names_alone_cannot_be_answered_without_a_watch() -> None:
    answer = await ask(verbs(ExtenderCluster()), "filter", asking("a"))
    assert "nodeCacheCapable: false" in answer["Error"]


async def test_a_node_sent_again_at_a_new_version_is_read_again() -> None:
    answering = verbs(
        ExtenderCluster(), 'policy "p" { filter "f" { require node.labels[?"ok"].orValue("no") == "yes" } }'
    )
    old, new = node("a", ok="no"), node("a", ok="yes")
    new["metadata"]["resourceVersion"] = "8"
    body = {"Pod": pod("p"), "Nodes": {"items": [old]}}
    assert (await ask(answering, "filter", body))["Nodes"]["items"] == []
    assert (await ask(answering, "filter", body | {"Nodes": {"items": [new]}}))["Nodes"]["items"] == [new]


async def test_the_nodes_that_requests_brought_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_cluster, "MAX_NODES", 3)
    cluster = ExtenderCluster()
    answering = verbs(cluster, 'policy "p" { filter "f" { require node.name != "z" } }')
    for names in ("ab", "cd", "c", "be"):
        items = [node(name) for name in names]
        assert (await ask(answering, "filter", {"Pod": pod("p"), "Nodes": {"items": items}}))["Nodes"]["items"] == items
    assert sorted(cluster.view.nodes.row_of) == ["b", "c", "e"]


async def test_what_refuses_a_pod_as_a_whole_has_a_reason_without_a_rule() -> None:
    body = {"Pod": pod("p", cpu="9e99"), "Nodes": {"items": [node("a")]}}
    answer = await ask(verbs(ExtenderCluster(), 'policy "p" { filter "f" { require true } }'), "filter", body)
    assert answer["FailedAndUnresolvableNodes"]["a"].startswith("requests: `cpu` is beyond")


async def test_a_name_that_nobody_knows_is_quoted_with_its_control_characters_as_escapes() -> None:
    answer = await ask(verbs(Known([node("a")]), ROOM), "filter", asking("a\x1b[2J\u202e"))
    [why] = answer["FailedNodes"].values()
    assert why == "node `a\\x1b[2J\\u202e` is not known to the extender"


async def test_a_reason_begins_as_a_word_is_written() -> None:
    answer = await verbs(ExtenderCluster(), ROOM).answer("filter", b"{}x")
    assert "ExtenderArgs: JSON is malformed" in answer.error


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"Pod": 3}', b'{"Pod": {"spec": []}, "NodeNames": ["a"]}'],
)
async def test_a_body_that_is_none_is_told_so_in_the_protocols_way(verb: str, body: bytes) -> None:
    answer = await verbs(Known([node("a")])).answer(verb, body)
    assert answer.status == (200 if verb in ("filter", "bind") else 400)
    assert json.loads(answer.body)["Error"]


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
async def test_node_names_are_an_array_of_strings(verb: str) -> None:
    answer = await verbs(Known([node("a")])).answer(verb, json.dumps({"Pod": pod("p"), "NodeNames": ["a", 1]}).encode())
    assert json.loads(answer.body)["Error"] == "the body is no ExtenderArgs: expected `str`, got `int` - at `$[1]`"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Pod", "Nodes", "NodeNames", "items", "metadata", "name", "spec", "Pods", "UID", "Node"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(verb=st.sampled_from(VERBS), body=json_values)
async def test_no_json_brings_a_verb_down(verb: str, body: Any) -> None:
    answer = await verbs(Known([node("a")])).answer(verb, json.dumps(body).encode())
    assert answer.status in (200, 400)


async def test_binding_without_a_server_says_what_to_change() -> None:
    body = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
    assert "bindVerb" in (await ask(verbs(Known([])), "bind", body))["Error"]
