"""The system's Chromium, driven by Playwright, and axe-core; what is missing skips the test in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "policyengine" / "server" / "pages" / "static" / "built" / "playground.js"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
PATIENT = 120_000.0
"""Milliseconds that anything may take on a machine with much else to do."""
_SERIOUS = ("serious", "critical")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed")
    if not BUNDLE.exists() or not AXE.exists():
        pytest.skip("`make web` has built nothing here: npm is missing")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    sync_api.expect.set_options(timeout=PATIENT)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=PATIENT)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, url: str, width: int = 1280, scheme: str = "light", **options: Any) -> Iterator[Page]:
    """A page in a fresh context. Errors of its scripts, and what its Content-Security-Policy refuses, fail the test."""
    said: list[str] = []
    viewport = {"width": width, "height": 900}
    context = browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce", **options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENT)
    page = context.new_page()
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
    page.on("dialog", lambda dialog: said.append(f"a dialog: {dialog.message}"))
    page.goto(url)
    try:
        yield page
        assert not said, said
    finally:
        context.close()


def serious(page: Page) -> list[str]:
    """What axe-core finds that keeps people from using the page."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {json.dumps([node['target'] for node in one['nodes'][:4]])}"
        for one in found["violations"]
        if one["impact"] in _SERIOUS
    ]


def is_wider_than_its_window(page: Page) -> bool:
    """Whether one has to scroll sideways."""
    wider: bool = page.evaluate("document.scrollingElement.scrollWidth > document.documentElement.clientWidth + 1")
    return wider


def one_of_each(browser: Browser, start: str) -> list[str]:
    """The addresses of pages that can be come to, one of each kind: all that link to one template count as one."""
    found: dict[str, str] = {}
    waiting = [start]
    with opened(browser, start) as page:
        while waiting:
            url = waiting.pop(0)
            if (kind := _kind(url, start)) in found:
                continue
            page.goto(url)
            found[kind] = url
            links: list[str] = page.eval_on_selector_all("a[href]", "all => all.map(one => one.getAttribute('href'))")
            there = (urldefrag(urljoin(url, link))[0] for link in links)
            waiting += [one for one in there if one.startswith(start)]
    return list(found.values())


def _kind(url: str, start: str) -> str:
    """`nodes/a?sort=x` -> `nodes/*`."""
    first, _, rest = url.removeprefix(start).partition("?")[0].partition("/")
    return f"{first}/*" if rest else first
