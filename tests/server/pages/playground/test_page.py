"""The playground over HTTP: who may ask, how much, and that what is asked comes back as text, never as markup."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from policyengine.clock import SystemClock
from policyengine.commands.installed_plugins import installed_registry
from policyengine.commands.lsp import toolchain
from policyengine.scheduler.state import SchedulerState
from policyengine.server.listening import listening
from policyengine.server.pages import rendering
from policyengine.server.pages.playground import page
from policyengine.server.pages.playground.page import Playground
from policyengine.server.pages.site import Site
from policyengine.server.pages.source import Moment, Present
from tests.server.pages.playground.texts import POLICY, SCENARIO

ASK = "/ui/playground/ask"


@asynccontextmanager
async def site(with_playground: bool = True) -> AsyncIterator[tuple[aiohttp.ClientSession, dict[str, str]]]:
    """A client of the pages, and the headers that their own page sends."""
    application = web.Application()
    playground = Playground(installed_registry, toolchain) if with_playground else None
    Site(Present("still", lambda: Moment(SchedulerState(), 0.0, "test")), SystemClock(), playground=playground).add_to(
        application
    )
    async with (
        listening(application, "127.0.0.1:0", None, 64, 0.1) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        yield session, {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}


async def post(session: aiohttp.ClientSession, own: dict[str, str], question: dict[str, Any]) -> dict[str, Any]:
    async with session.post(ASK, json=question, headers=own) as answer:
        assert answer.status == 200, await answer.text()
        found: dict[str, Any] = await answer.json()
        return found


async def test_the_page_has_the_words_of_the_grammar_and_what_to_begin_with() -> None:
    async with site() as (session, _), session.get("/ui/playground") as answer:
        text = await answer.text()
        assert answer.status == 200 and "unsafe" not in answer.headers["Content-Security-Policy"]
        assert "<option>bin-packing</option>" in text or "make web" in text
        assert '"words": ["after"' in text


async def test_without_the_bundles_the_page_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "BUILT", "static/built/nothing.js")
    async with site() as (session, _), session.get("/ui/playground") as answer:
        text = await answer.text()
        assert "run <code>make web</code>" in text and "static/built" not in text


SAID = (
    (POLICY.replace("require", "demand"), SCENARIO, "The policy has 1 mistake; nothing is played."),
    (POLICY, "", "1 of 1 tests pass."),
    ("", "", "There is nothing to play."),
    (POLICY, "nodes: 3", "the scenario cannot be used: "),
    ("// \n" * 300_000, SCENARIO, "`playground.policy` "),
)


HOSTILE = {"roomy": "<script>alert(1)</script>", "2 else": "9 else", "cpu left": "\\u001b[31m"}


async def test_an_answer_is_a_sentence_and_html_in_which_names_are_text() -> None:
    policy = POLICY
    for word, other in HOSTILE.items():
        policy = policy.replace(word, other)
    async with site() as (session, own):
        answer = (await post(session, own, {"ask": "evaluate", "policy": policy, "cluster": SCENARIO}))["answer"]
        assert answer["said"] == "0 of 6 pods are placed, 6 wait. 0 of 1 tests pass."
        assert "&lt;script&gt;alert(1)" in answer["html"] and "<script" not in answer["html"]
        assert "\x1b" not in answer["html"]
        for policy, cluster, said in SAID:
            answer = (await post(session, own, {"ask": "evaluate", "policy": policy, "cluster": cluster}))["answer"]
            assert answer["said"].startswith(said)
            assert answer["html"].strip() or said.startswith("There")
        # A place beyond the text has nothing to say.
        for line, character in ((10**9, 10**9), (0, 10**9)):
            place = {"line": line, "character": character}
            assert "answer" in await post(session, own, {"ask": "hover", "policy": POLICY, "at": place})


ENDLESS = "nodes: [{name: n, count: 90}]\npods: [{name: p, every: 1s, until: 11d, runs: 20s}]"


async def test_a_slow_text_is_ended_and_others_are_answered_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page, "PATIENCE", 600.0)  # a machine with much else to do
    slow = {"ask": "evaluate", "policy": POLICY, "cluster": ENDLESS}
    async with site() as (session, own):
        first = asyncio.create_task(post(session, own, slow))
        assert (await post(session, own, {"ask": "start"}))["answer"]["policy"].startswith('policy "first"')
        assert "takes more than 2 s of CPU time" in (await first)["unusable"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
    ],
)
async def test_only_the_pages_own_script_may_ask(headers: dict[str, str], status: int) -> None:
    async with site() as (session, own), session.post(ASK, data='{"ask":"tests"}', headers=own | headers) as answer:
        assert answer.status == status, await answer.text()


NO_QUESTIONS = (
    *(b"", b"{", b"[]", b"null", b'{"ask":"exec"}', b'{"ask":"evaluate","policy":3}'),
    *(b'{"ask":"hover","at":{"line":"x"}}', b'{"ask":"hover","at":{"line":-1,"character":0}}'),
    *(b'{"ask":"hover","at":null}', b'{"ask":"evaluate","policy":"\xff"}'),
    *(b"[" * 100_000, b'{"ask":"hover","at":{"line":1e99,"character":0}}'),
)


async def test_what_is_no_question_is_refused_in_words() -> None:
    async with site() as (session, own):
        for body in NO_QUESTIONS:
            async with session.post(ASK, data=body, headers=own) as answer:
                assert answer.status == 400, body
                assert (await answer.text()).startswith("the question is not understood: "), body


async def test_a_question_beyond_the_limit_is_refused_before_it_is_read() -> None:
    async with site() as (session, own), session.post(ASK, data=b" " * (page.LARGEST + 1), headers=own) as answer:
        assert answer.status == 413 and "longer than 8388608 bytes" in await answer.text()


async def test_one_question_too_many_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "WAITING", 0)
    async with site() as (session, own), session.post(ASK, data='{"ask":"start"}', headers=own) as answer:
        assert answer.status == 503 and "ask again" in await answer.text()


async def test_where_no_playground_is_there_is_none() -> None:
    async with site(with_playground=False) as (session, own):
        async with session.get("/ui/playground") as answer:
            assert answer.status == 404
        async with session.post(ASK, data='{"ask":"start"}', headers=own) as answer:
            assert answer.status == 405
        async with session.get("/ui/") as answer:
            assert "playground" not in await answer.text()
