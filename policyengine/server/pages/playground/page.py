"""The playground over HTTP: its page, and `ask`, the one path that takes a body.

Rules:
1. A question comes from our own page: its Origin is the address it is asked at, its type JSON, which no form of another
   site can send.
2. Nothing is kept: an answer is made of the texts of its question, by `work`, within limits of time and memory.
3. So many questions are worked on at once as there are processors, few more wait, and others are told to come again.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from aiohttp import web
from yarl import URL

from policyengine.compiler.assemble import PluginRegistry
from policyengine.control_characters import escaped
from policyengine.kube.limited_work import Ended, LimitedWork, NoAnswer, NoProcess
from policyengine.language.parsing.grammar import word_terminals
from policyengine.server.listening import Bodies, BodyRefused
from policyengine.server.pages import rendering
from policyengine.server.pages.playground import texts, work

if TYPE_CHECKING:
    from policyengine.server.language_server.documents import Toolchain  # of the extra `lsp`

SECONDS: Final = 2.0
"""CPU time of an answer."""
PATIENCE: Final = 30.0
"""Seconds until it is given up."""
LARGEST: Final = 8 << 20
"""Bytes of a question, as a whole."""
TOGETHER: Final = 32 << 20
WAITING: Final = 16
"""Questions that may wait for a processor."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Place(msgspec.Struct, frozen=True):
    """A position, as LSP counts it."""

    line: Count
    character: Count


class Question(msgspec.Struct):
    """What the page asks, with all that the answer is made of."""

    ask: Literal["evaluate", "findings", "complete", "hover", "export", "start", "tests", "cluster"]
    policy: str = ""
    before: str = ""
    cluster: str = ""
    what: str = ""
    at: Place = Place(0, 0)


class Playground:
    """The handlers, and the process that answers; `close` ends it."""

    def __init__(self, registry: Callable[[], PluginRegistry], toolchain: Callable[[], Toolchain]) -> None:
        """Both are functions of modules: the process that answers imports them. See `work.prepared`."""
        named = (f"{one.__module__}:{one.__name__}" for one in (registry, toolchain))
        self._work = LimitedWork(work.prepared, *named)
        self._bodies = Bodies(LARGEST, TOGETHER)
        self._turns = asyncio.Semaphore(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
        self._asked = 0

    def close(self) -> None:
        """End the process."""
        self._work.close()

    def page(self, frame: Mapping[str, Any]) -> web.Response:
        """The page. `frame`: what every page has around its own."""
        config = {"words": sorted(word_terminals()), "edits": work.edits(), "most": LARGEST // 2}
        shown = {**frame, "starts": texts.names(), "config": config}
        return web.Response(text=rendering.page("playground.html", shown), content_type="text/html")

    async def ask(self, request: web.Request) -> web.Response:
        """The answer to a question."""
        if told := _foreign(request):
            return web.Response(status=403, text=f"{told}\n")
        if request.content_type != "application/json":
            return web.Response(status=415, text="a question is JSON: say `Content-Type: application/json`\n")
        try:
            async with self._bodies.read(request) as body:
                question = msgspec.json.decode(body, type=Question)
        except BodyRefused as error:
            return web.Response(status=error.status, text=f"{error}\n")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return web.Response(status=400, text=f"the question is not understood: {escaped(str(error))}\n")
        if self._asked >= WAITING:
            return web.Response(status=503, text="too many questions are asked at once: ask again\n")
        self._asked += 1
        try:
            async with self._turns:
                return web.json_response(await self._answered(question))
        finally:
            self._asked -= 1

    async def _answered(self, question: Question) -> dict[str, Any]:
        """`{answer}`, or `{unusable}`: a sentence."""
        try:
            ended = await self._work.ended(msgspec.to_builtins(question), SECONDS, PATIENCE)
        except NoProcess as why:
            return {"unusable": f"no process to try it in can be started: {why}"}
        except NoAnswer:
            return {"unusable": "there was no answer: the process that tried it was ended"}
        except TimeoutError:
            return {"unusable": f"there was no answer within {PATIENCE:g} s: the machine has too much to do"}
        if ended.by or ended.is_out_of_memory:
            return {"unusable": _unfinished(ended)}
        found: dict[str, Any] = ended.answer
        if question.ask == "evaluate" and "answer" in found:
            found["answer"] |= {
                "html": rendering.page("playground_answer.html", found["answer"]),
                "said": _said(found["answer"]),
            }
        return found


def _foreign(request: web.Request) -> str:
    """Why the question is not one of our own page's, "" where it is."""
    try:
        origin = URL(request.headers.get("Origin", "")).authority
    except ValueError:
        origin = ""
    if not origin or origin.lower() != request.headers.get("Host", "").lower():
        return "only the playground's own page asks here: its Origin is this server's address"
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return "only the playground's own page asks here"
    return ""


def _unfinished(ended: Ended) -> str:
    if ended.is_out_of_memory:
        return work.TOO_LARGE
    if ended.by == signal.SIGPROF:
        return f"this takes more than {SECONDS:g} s of CPU time: shorten the policy, or take a smaller cluster"
    return f"this was ended by {signal.Signals(ended.by).name}; ask again"


def _said(found: Mapping[str, Any]) -> str:
    """The answer in a sentence."""
    if found["unusable"]:
        return str(found["unusable"])
    errors = sum(one["is_error"] for one in found["problems"])
    if errors:
        return f"The policy has {errors} mistake{'s' * (errors > 1)}; nothing is played."
    failed = sum(bool(one["failures"]) for one in found["tests"])
    tests = f"{len(found['tests']) - failed} of {len(found['tests'])} tests pass." if found["tests"] else ""
    if "pods" not in found:
        return tests or "There is nothing to play."
    placed = f"{found['bound']:,} of {found['pod_count']:,} pods are placed, {found['waiting']:,} wait."
    return f"{placed} {tests}".strip()
