"""The pages over HTTP: who may ask by what name, what a browser is told, and that hostile names stay names."""

import re

import pytest

from policyengine.policy_compiler import compile_text
from policyengine.scheduler.messages import ProfileReplaced
from policyengine.scheduler.state import SchedulerState
from tests.scheduler.driver import Driver, node, pod
from tests.server.pages.scenes import pages

SCRIPT = "<script>alert(1)</script>"
ESCAPE = "a\x1b[2Jb\u202e"


async def test_the_root_leads_to_the_overview() -> None:
    async with pages(SchedulerState()) as site, site.session.get("/") as answer:
        assert (answer.status, answer.url.path) == (200, "/ui/")
        assert "No pod waits." in await answer.text()


@pytest.mark.parametrize("path", ["/ui/", "/ui/static/pages.css", "/ui/static/none.css", "/ui/?at=x", "/ui/pods/a/b"])
async def test_every_answer_forbids_what_is_not_ours(path: str) -> None:
    async with pages(SchedulerState()) as site, site.session.get(path) as answer:
        told = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in told and "script-src 'self';" in told and "frame-ancestors 'none'" in told
        assert "unsafe" not in told
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


OURS = ("localhost:1", "127.0.0.1", "10.1.2.3:10259", "[::1]:8770", "pages.example", "PAGES.EXAMPLE:80")
OTHERS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "")


async def test_only_addresses_and_names_that_were_given_may_be_asked_for() -> None:
    async with pages(SchedulerState(), hosts=["pages.example"]) as site:
        for host, status in (*((one, 200) for one in OURS), *((one, 403) for one in OTHERS)):
            for path in ("/ui/", "/ui/static/pages.css", "/"):
                async with site.session.get(path, headers={"Host": host}, allow_redirects=False) as answer:
                    assert answer.status == (302 if path == "/" and status == 200 else status), host


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_changed(method: str) -> None:
    async with pages(SchedulerState()) as site, site.session.request(method, "/ui/") as answer:
        assert answer.status == 405


@pytest.mark.parametrize("at", ["x", "nan", "-1", "1e300", "inf", SCRIPT])
async def test_a_moment_that_is_none_is_refused_in_words(at: str) -> None:
    async with pages(SchedulerState()) as site:
        status, text = await site.answer("", at=at)
        assert status == 400
        assert "is no moment" in text and SCRIPT not in text
        assert 'href="./?at' not in text, "it leads to where something is shown"


async def test_files_beside_the_static_ones_are_not_served() -> None:
    async with pages(SchedulerState()) as site:
        for name in ("..%2Fsite.py", "%2e%2e/site.py", "site.py", "..%2Ftemplates%2Fbase.html", "pages.html"):
            async with site.session.get(f"/ui/static/{name}") as answer:
                assert answer.status == 404


async def test_a_page_leads_to_every_page_it_names_and_all_are_there() -> None:
    driver = _hostile()
    async with pages(driver.state, driver.now) as site:
        seen, left = set[str](), [""]
        while left:
            path = left.pop()
            async with site.session.get(f"/ui/{path}") as answer:
                text = await answer.text()
                assert answer.status == 200 or "pods/" in path, (path, text)
                here = answer.url
            for link in re.findall(r'href="([^"#]+)"', text):
                found = here.join(here.__class__(link.replace("&amp;", "&")))
                name = str(found.relative()).removeprefix("/ui/")
                assert found.host == here.host and found.path.startswith("/ui/"), link
                if name not in seen and len(seen) < 60:
                    seen.add(name)
                    left.append(name)
        assert {"pods", "nodes", "policies", "policies/default-scheduler"} <= seen


def _hostile() -> Driver:
    driver = Driver()
    text = f'policy "p" {{ scheduler "s" filter "{SCRIPT}" {{ require node.name == "{SCRIPT}" else "{SCRIPT}" }} }}'
    driver.send(ProfileReplaced(compile_text(text, file=SCRIPT).profiles[0]))
    driver.see(node(SCRIPT).label("zone", SCRIPT), node(ESCAPE).label("zone", ESCAPE), node("n1").label("zone", "a"))
    driver.see(pod(SCRIPT), pod(ESCAPE), pod("big", cpu="64").node_selector({"a": SCRIPT}))
    driver.see(pod("ruled", cpu="3").scheduler("s"), pod("ruled-too", cpu="3").scheduler("s"))
    driver.see(pod("unserved").scheduler(SCRIPT))
    for _ in range(8):
        driver.cycle()
    return driver


SHOWN: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {}),
    ("", {"by": f"rule:{SCRIPT}", "group": "zone"}),
    ("", {"by": SCRIPT, "group": SCRIPT}),
    ("pods", {}),
    ("pods", {"q": SCRIPT, "place": "bound", "reason": SCRIPT, "sort": SCRIPT, "page": SCRIPT}),
    ("pods/default/ruled-too", {"rule": SCRIPT, "sort": SCRIPT, "node": SCRIPT, "remedies": "1"}),
    ("pods/default/ruled", {}),
    ("pods/default/big", {"remedies": "1"}),
    ("pods/default/unserved", {}),
    ("nodes", {"label": "zone", "value": SCRIPT}),
    ("nodes/n1", {}),
    ("policies", {}),
    ("policies/s", {}),
    ("policies/s", {"coverage": "1"}),
)


async def test_hostile_names_are_shown_as_names() -> None:
    driver = _hostile()
    async with pages(driver.state, driver.now) as site:
        for path, query in SHOWN:
            text = await site.get(path, **query)
            assert SCRIPT not in text, path
            assert "\x1b" not in text and "\u202e" not in text, path
            assert not re.search(r"<[a-z]+[^>]* (on[a-z]+|style)=", text), path
            for script in re.findall(r"<script([^>]*)>", text):
                assert " src=" in script or 'type="application/json"' in script, path
