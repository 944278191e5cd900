"""Reviews of ConfigMaps: what is broken is refused with its place, everything else passes."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.config.configuration import read
from policyengine.kube.policies.allow_list import allowed
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.precedence import Problem
from policyengine.kube.policies.proving import Unproved
from policyengine.server.listening import listening
from policyengine.server.webhook import API_VERSION, NoReview, application, reviewed

GOOD = 'policy "p" { filter "f" { require node.name != "x" } }'
BROKEN = 'policy "p" {\n  filter "f" { require node.nane != "x" }\n}'
FAILING = """policy "p" {
  test "t" {
    given node "a" { allocatable: {cpu: 1, memory: 1Gi, pods: 10} }
    given pod "q" { requests: {cpu: 2} }
    expect "q" on "a"
  }
}"""


def config_map(data: dict[str, str], label: str = "true", **annotations: str) -> dict[str, Any]:
    metadata = {"name": "c", "namespace": "kube-system", "labels": {"policyengine.io/policy": label}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata | {"annotations": annotations}, "data": data}


def review(item: Any, operation: str = "CREATE") -> bytes:
    request = {"uid": "u-1", "operation": operation, "userInfo": {"username": "jane"}, "object": item}
    return json.dumps({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": request}).encode()


async def prove(author: str, name: str, data: Mapping[str, str]) -> Problem | None:
    assert author == "jane"
    return compiled(data, may=allowed(name, ALLOW)).problem


ALLOW = read("apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n", "x").data["policies"]["allow"]


def asked(item: Any, operation: str = "CREATE") -> dict[str, Any]:
    answer = asyncio.run(reviewed(review(item, operation), prove))
    assert (answer["apiVersion"], answer["kind"]) == (API_VERSION, "AdmissionReview")
    assert answer["response"]["uid"] == "u-1"
    return dict(answer["response"])


def scheduling_policy(text: str, **fields: Any) -> dict[str, Any]:
    meta = {"name": "c", "namespace": "kube-system"}
    kind = {"apiVersion": "policyengine.io/v1alpha1", "kind": "SchedulingPolicy"}
    return {**kind, "metadata": meta, "spec": {"policies": {"p.policy": text}, **fields}}


BINARY = {"binaryData": {"q.policy": "cG9saWN56Q=="}}
SHADOW = {"policyengine.io/mode": "shadow"}
REVIEWED: dict[str, tuple[Any, str]] = {
    "a good policy": (config_map({"p.policy": GOOD, "notes.txt": "anything"}), ""),
    "a mistake": (config_map({"p.policy": BROKEN}), "line 2, column 29"),
    "a test that fails": (config_map({"p.policy": FAILING}), "line 5, column"),
    "no policy": (config_map({"notes.txt": ""}), "has no key that ends in `.policy`"),
    "unknown params": (config_map({"p.policy": GOOD, "params.yaml": "nothing: 3"}), "`params.yaml`"),
    "a name it may not serve": (
        config_map({"p.policy": '\npolicy "p" { scheduler "default-scheduler" }'}),
        "line 2, column 1: `c` may not serve",
    ),
    "no UTF-8": (config_map({"p.policy": GOOD}) | BINARY, "`q.policy` stands under `binaryData`"),
    "a picture": (config_map({"p.policy": GOOD}) | {"binaryData": {"logo.png": "iVBORw=="}}, ""),
    "no label": (config_map({"p.policy": BROKEN}, label="false"), ""),
    "another kind": ({"kind": "Secret"}, ""),
    "a shadow": (config_map({"p.policy": GOOD}, **SHADOW), ""),
    "no share": (
        config_map({"p.policy": GOOD}, **SHADOW, **{"policyengine.io/shadow-sample": "all"}),
        "`all` is no percentage",
    ),
    "a canary of nobody": (
        config_map({"p.policy": GOOD}, **{"policyengine.io/mode": "canary"}),
        "which pods are its own?",
    ),
    "SchedulingPolicy": (scheduling_policy(GOOD), ""),
    "SchedulingPolicy: a mistake": (scheduling_policy(BROKEN), "line 2, column 29"),
    "SchedulingPolicy: a test that fails": (scheduling_policy(FAILING), "line 5, column"),
    "SchedulingPolicy: unknown params": (
        scheduling_policy(GOOD, params={"nothing": 3}),
        "`spec.params`: `nothing` is no parameter",
    ),
    "SchedulingPolicy: a canary of nobody": (
        scheduling_policy(GOOD, mode="Canary"),
        "a canary needs `spec.canary.namespaceSelector` or",
    ),
    "SchedulingPolicy: no number": (
        scheduling_policy(GOOD, mode="Shadow", budget={"least": "no"}),
        "`spec.budget`, `least`: `no` is no number",
    ),
    "SchedulingPolicy: no policy": (scheduling_policy(GOOD, policies={}), "`spec.policies` has no policy"),
    "SchedulingPolicy: no text": (scheduling_policy(GOOD, policies={"a.policy": 3}), "spec.policies"),
}


@pytest.mark.parametrize(("item", "message"), REVIEWED.values(), ids=REVIEWED)
def test_what_is_broken_is_refused_with_its_place_and_all_else_passes(item: Any, message: str) -> None:
    response = asked(item, "UPDATE")
    assert response["allowed"] is not bool(message)
    assert message in response.get("status", {}).get("message", "")
    assert response.get("status", {}).get("code") == (422 if message else None)


def test_what_goes_away_passes() -> None:
    assert asked(None, "DELETE")["allowed"] and asked(config_map({"p.policy": BROKEN}), "DELETE")["allowed"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"request": 3}', b'{"request": {"uid": "u"}}', b"\xff"])
def test_a_body_that_is_no_review_is_told_so(body: bytes) -> None:
    with pytest.raises(NoReview):
        asyncio.run(reviewed(body, prove))


@pytest.mark.parametrize("data", [{"\ud800": "x"}, {"p.policy": "\udfff"}])
def test_half_a_character_that_came_as_an_escape_makes_no_review(data: dict[str, str]) -> None:
    body = review(config_map(data))
    assert b"\\ud" in body
    with pytest.raises(NoReview):
        asyncio.run(reviewed(body, prove))
    assert asyncio.run(reviewed(review({"\U0001f600": "\U0001f600"}), prove))["response"]["allowed"]


def test_a_uid_that_would_fill_the_log_is_refused() -> None:
    body = review(config_map({"p.policy": GOOD})).replace(b'"u-1"', b'"' + b"u" * 129 + b'"')
    with pytest.raises(NoReview, match="the review's uid has more than 128 characters"):
        asyncio.run(reviewed(body, prove))


any_text = st.text(st.characters(exclude_categories=()), max_size=4)
values = st.recursive(
    st.none() | st.booleans() | any_text,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["metadata", "labels", "data", "kind", "p.policy", "annotations"]) | any_text,
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=100)
@given(item=values)
def test_no_object_brings_it_down(item: Any) -> None:
    labelled = {"kind": "ConfigMap", "metadata": {"labels": {"policyengine.io/policy": "true"}}, "data": item}
    for one in (item, labelled, {"kind": "SchedulingPolicy", "spec": item}):
        try:
            assert isinstance(asked(one)["allowed"], bool)
        except NoReview:  # refused as it stands: half a surrogate pair is no text
            with pytest.raises(UnicodeEncodeError):
                json.dumps(one, ensure_ascii=False).encode()


ROOT = Path(__file__).resolve().parents[2]
PASSING = """policy "p" {
  test "t" {
    given node "a" { allocatable: {cpu: 4, memory: 1Gi, pods: 10} }
    given pod "q" { requests: {cpu: 2} }
    expect "q" on "a"
  }
}"""
FRESH = """
import asyncio, sys
from contextlib import closing
from policyengine.commands.installed_plugins import installed_registry
from policyengine.kube.policies.proving import Prover
from policyengine.server.listening import listening
from policyengine.server.webhook import application

async def main():
    with closing(Prover(installed_registry)) as prover:
        await serve(prover)

async def serve(prover):
    async with listening(application(prover.problem), "127.0.0.1:0", None, 256, 1.0) as port:
        print(port, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


async def late(author: str, name: str, data: Mapping[str, str]) -> Problem | None:
    await asyncio.sleep(60)
    return None


async def broken(author: str, name: str, data: Mapping[str, str]) -> Problem | None:
    raise Unproved("its proof ended without an answer")


@pytest.mark.parametrize(
    ("prove", "message"),
    [
        (late, "it was not proved within 1 s: others are proved before it; apply it again"),
        (broken, "its proof ended without an answer; apply it again"),
    ],
)
async def test_a_policy_that_is_not_proved_within_the_api_servers_time_out_is_refused_with_that_reason(
    prove: Any, message: str
) -> None:
    body = review(config_map({"p.policy": GOOD}))
    async with (
        listening(application(prove), "127.0.0.1:0", None, 8, 1.0) as port,
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}/validate?timeout=2s", data=body) as response,
    ):
        answer = (await response.json())["response"]
    assert answer["status"] == {"code": 504, "reason": "Timeout", "message": message}
    assert not answer["allowed"]


async def test_64_reviews_at_once_are_answered_by_a_fresh_process() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", FRESH, stdin=PIPE, stdout=PIPE, cwd=ROOT)
    assert process.stdin is not None and process.stdout is not None
    url = f"http://127.0.0.1:{int(await process.stdout.readline())}/validate?timeout=60s"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64)) as session:

        async def allowed(data: dict[str, str]) -> bool:
            async with session.post(url, data=review(config_map(data))) as response:
                return bool((await response.json())["response"]["allowed"])

        answers = await asyncio.gather(*(allowed({"p.policy": (PASSING, FAILING)[one % 2]}) for one in range(64)))
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 30) == 0
    assert answers == [True, False] * 32
