"""What the pages run in a browser is made of exactly what the lock file names, and comes with its licences."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
WEB = ROOT / "web"
BUILT = ROOT / "policyengine" / "server" / "pages" / "static" / "built"
LOCK: dict[str, Any] = json.loads((WEB / "package-lock.json").read_text())["packages"]


@pytest.fixture
def hashes() -> dict[str, dict[str, str]]:
    if not (BUILT / "hashes.json").exists():
        pytest.skip("`make web` has built nothing here: npm is missing")
    found: dict[str, dict[str, str]] = json.loads((BUILT / "hashes.json").read_text())
    return found


def test_every_package_of_a_bundle_has_the_hash_of_the_lock(hashes: dict[str, dict[str, str]]) -> None:
    assert hashes["packages"] and hashes["packages"] == {name: LOCK[name]["integrity"] for name in hashes["packages"]}


def test_the_bundles_are_those_that_were_built_and_of_the_sources_as_they_are(
    hashes: dict[str, dict[str, str]],
) -> None:
    assert {"playground.js", "charts.js", "LICENSES.txt"} <= hashes["files"].keys()
    assert hashes["files"] == {name: digest(BUILT / name) for name in hashes["files"]}
    assert hashes["sources"] == {name: digest(WEB / name) for name in hashes["sources"]}, "run `make web`"


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_every_package_of_a_bundle_comes_with_the_text_of_its_licence(hashes: dict[str, dict[str, str]]) -> None:
    text = (BUILT / "LICENSES.txt").read_text()
    for folder in hashes["packages"]:
        assert f"{folder.removeprefix('node_modules/')} {LOCK[folder]['version']}\n" in text
        assert LOCK[folder]["license"] == "MIT"
    assert text.count("Permission is hereby granted") == len(hashes["packages"])


def test_the_lock_names_no_registry_and_hashes_everything() -> None:
    assert "resolved" not in json.dumps(LOCK)
    assert all("integrity" in one for name, one in LOCK.items() if name)


def test_what_is_fetched_or_built_is_not_committed() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"policyengine/server/pages/static/built/", "web/node_modules/"} <= set(ignored)
