"""The pages in a real browser, on a sandbox: each can be used by everybody, and the playground does what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.browser import chromium, is_wider_than_its_window, one_of_each, opened, serious
from tests.e2e.cluster import pod

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

POLICY = """policy "shop" {
  scheduler "shop"
  filter "<script>alert(1)</script>" { require node.free.cpu >= 2 else "has {node.free.cpu} cpu left" }
  score "emptiest" weight 1 = 100 * ratio(node.free.cpu, node.allocatable.cpu)
  score "cache" weight 1 = 50 * ratio(node.free.memory, node.allocatable.memory)
  gang "crew" when has(pod.labels.crew) { key: pod.labels.crew min: 3 timeout: 60s }
}
"""
PICTURES = os.environ.get("PICTURES", "")
"""A folder for screenshots, such as docs/web; none are taken without."""
SHOWN = ("overview", "policies-shop", "playground-edited")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def start(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a sandbox's pages."""
    folder = tmp_path_factory.mktemp("sandbox")
    (folder / "shop.policy").write_text(POLICY)
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": list(cluster())}))
    command = [sys.executable, "-m", "policyengine.commands.main", "sandbox", "--cluster", "dump.json"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    path = os.pathsep.join(one or str(Path.cwd()) for one in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    child = subprocess.Popen([*command, "--policy", "shop.policy"], cwd=folder, env=environment, **quiet)
    try:
        assert child.stdout is not None
        address = next(line.split()[-1] for line in child.stdout if line.startswith("look at"))
        yield f"{address}ui/"
    finally:
        child.terminate()
        child.communicate()


def cluster() -> Iterator[dict[str, Any]]:
    """Nodes in two zones; pods that run, that wait for room, and that wait for one more."""
    for number in range(12):
        labels = {"topology.kubernetes.io/zone": f"zone-{'ab'[number % 2]}", "kubernetes.io/hostname": f"node-{number}"}
        room = {"cpu": "8" if number % 3 else "16", "memory": "32Gi", "pods": "110"}
        status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
        yield {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": f"node-{number}", "labels": labels},
            "status": status,
        }
    for number in range(40):
        yield pod(f"web-{number}", "1500m", "shop", app="web")
    yield pod("too-large", "64", "shop")
    yield pod("crew-0", "1", "shop", crew="blue")


# --- every page ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360), ("light", 2560)])
def test_every_page_can_be_used_by_everybody(browser: Browser, start: str, scheme: str, width: int) -> None:
    found = {}
    for url in one_of_each(browser, start):
        with opened(browser, url, width, scheme) as page:
            if url.endswith("playground"):
                answered(page)
            wrong = serious(page) + ["it is wider than its window"] * is_wider_than_its_window(page)
            if wrong:
                found[url.removeprefix(start)] = wrong
            if (scheme, width) == ("light", 1280):
                _picture(page, _name(url.removeprefix(start)))
    assert found == {}


def _name(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.partition("?")[0].lower()).strip("-") or "overview"


def _picture(page: Page, name: str) -> None:
    if PICTURES and name in SHOWN:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"))


def test_a_rule_named_like_a_script_is_text_on_every_page(browser: Browser, start: str) -> None:
    for url in one_of_each(browser, start):
        with opened(browser, url) as page:
            assert page.locator("script:not([src]):not([type='application/json'])").count() == 0


def test_every_page_but_the_playground_can_be_read_without_javascript(browser: Browser, start: str) -> None:
    for url in one_of_each(browser, start):
        with opened(browser, url, java_script_enabled=False) as page:
            assert page.locator("h1").inner_text()
            assert page.get_by_text("The playground needs JavaScript").is_visible() == url.endswith("playground")


# --- the playground --------------------------------------------------------------------------------------


def answered(page: Page) -> str:
    """What is said once the texts as they are have been answered."""
    page.locator("#play-answer[aria-busy=false]").wait_for()
    return page.locator("#play-status").inner_text()


PASTE = """(box, text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  box.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def pasted(page: Page, editor: str, text: str) -> None:
    """Paste over the text of an editor."""
    box = page.get_by_role("textbox", name=editor)
    box.click()
    page.keyboard.press("ControlOrMeta+a")
    box.evaluate(PASTE, text)


def line(page: Page, text: str) -> Locator:
    return page.locator("#play-policy .cm-line").filter(has_text=text)


def test_a_policy_is_edited_and_the_finding_and_the_placement_change(browser: Browser, start: str) -> None:
    from playwright.sync_api import expect

    with opened(browser, f"{start}playground") as page:
        status = page.locator("#play-status")
        expect(status).to_have_text("10 of 10 pods are placed, 0 wait. 1 of 1 tests pass.")
        line(page, "require node.free.cpu >= 1").click()
        page.keyboard.press("End")
        page.keyboard.insert_text(" && node.fre.cpu > 2")
        expect(status).to_have_text("The policy has 1 mistake; nothing is played.")
        expect(page.locator("#play-policy .cm-lintRange-error")).not_to_have_count(0)
        expect(page.locator("#play-answer")).to_contain_text("fre")
        for _ in range(len(" && node.fre.cpu > 2")):
            page.keyboard.press("Backspace")
        page.keyboard.insert_text(" && node.free.cpu > 3")
        expect(status).to_contain_text("pods are placed, 7 wait")
        expect(page.locator("#play-policy .cm-lintRange-error")).to_have_count(0)
        expect(page.get_by_role("heading", name="Newly waiting: 7")).to_be_visible()
        expect(page.locator("#play-pictures canvas")).to_have_count(2)
        page.keyboard.press("Escape")
        _picture(page, "playground-edited")


def test_completion_hover_and_a_quick_fix_come_from_the_language_server(browser: Browser, start: str) -> None:
    from playwright.sync_api import expect

    with opened(browser, f"{start}playground") as page:
        answered(page)
        line(page, "require node.free.cpu >= 1").click()
        page.keyboard.press("End")
        page.keyboard.type(" && node.")
        expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("allocatable")
        page.keyboard.type("free.cpu >= 1 && true")
        page.keyboard.press("Escape")
        expect(page.locator("#play-policy .cm-lintRange-warning")).not_to_have_count(0)
        line(page, "score").locator("span", has_text="score").first.hover()
        expect(page.locator(".cm-said").first).to_be_visible()
        page.mouse.move(0, 0)
        page.locator("#play-policy .cm-lintRange-warning").first.hover()
        page.get_by_role("button", name=re.compile("allow PE[0-9]+ here, with a reason")).last.click()
        expect(page.locator("#play-policy")).to_contain_text("// lint: allow PE")


def test_a_link_holds_both_texts(browser: Browser, start: str) -> None:
    from playwright.sync_api import expect

    with opened(browser, f"{start}playground") as page:
        answered(page)
        pasted(page, "Cluster and pods", "nodes: []  # ünï<b>\npods: []")
        expect(page.locator("#play-status")).to_contain_text("0 of 0 pods are placed")
        page.wait_for_function("location.hash.length > 20")
        expect(page.locator("#play-answer[aria-busy=false]")).to_have_count(1)
        address = page.evaluate("location.href")
    with opened(browser, address) as page:
        expect(page.locator("#play-cluster")).to_contain_text("# ünï<b>")
        expect(page.locator("#play-status")).to_contain_text("0 of 0 pods are placed")


@pytest.mark.parametrize(
    ("fragment", "told"),
    [
        ("1AAAA", "cut off or damaged"),
        ("1%%%", "cut off or damaged"),
        ("7abc", "another version"),
        ("x", "another version"),
        ("BOMB", "unpacks to more than 8 MiB"),
    ],
)
def test_a_damaged_link_is_said_in_words(browser: Browser, start: str, fragment: str, told: str) -> None:
    from playwright.sync_api import expect

    if fragment == "BOMB":
        import base64
        import zlib

        packer = zlib.compressobj(9, wbits=-15)
        packed = packer.compress(b'{"policy": "' + b"/" * (64 << 20)) + packer.flush()
        fragment = "1" + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    with opened(browser, f"{start}playground#{fragment}") as page:
        expect(page.locator("#play-link-problem")).to_contain_text(told)
        expect(page.locator("#play-status")).to_contain_text("10 of 10 pods are placed")


def test_a_policy_of_1_mib_is_refused_in_words_and_the_page_goes_on(
    browser: Browser, start: str, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    with opened(browser, f"{start}playground") as page:
        answered(page)
        (tmp_path / "huge.policy").write_text("// a comment\n" * 90_000)
        page.locator("#play-file").set_input_files(tmp_path / "huge.policy")
        expect(page.locator("#play-status")).to_contain_text("1 MiB")
        page.locator("#play-start").select_option("bin-packing")
        expect(page.locator("#play-status")).to_contain_text("1 of 1 pods are placed")


def test_what_is_taken_along_is_shown_to_be_copied_or_saved(browser: Browser, start: str) -> None:
    from playwright.sync_api import expect

    with opened(browser, f"{start}playground") as page:
        answered(page)
        for button, name, begins in (
            ("ConfigMap", "first.yaml", "apiVersion: v1"),
            ("Test", "first-test.txt", "test "),
            ("Scenario", "first-scenario.yaml", "name: first"),
        ):
            page.get_by_role("button", name=button, exact=True).click()
            expect(page.locator("#play-export-name")).to_have_text(name)
            assert page.locator("#play-export-text").input_value().startswith(begins)
            with page.expect_download() as saved:
                page.get_by_role("link", name="Save").click()
            assert saved.value.suggested_filename == name
            page.get_by_role("button", name="Close").click()
        assert serious(page) == []
