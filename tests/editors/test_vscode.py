"""VS Code's extension: what wakes it, when it starts a server, and which packages it is made of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

VSCODE = Path(__file__).parent.parent.parent / "editors/vscode"
SCRIPT = """
const Module = require("module");
let starts = 0;
const [settings, opened] = [JSON.parse(process.argv[1]), []];
const handlers = {};
const listen = (name) => (handler) => ((handlers[name] = handler), {});
const vscode = {
  workspace: {
    getConfiguration: () => ({ get: (name, otherwise) => settings[name] ?? otherwise }),
    createFileSystemWatcher: () => ({}),
    onDidChangeConfiguration: listen("changed"),
    onDidOpenTextDocument: listen("opened"),
    textDocuments: opened,
  },
  commands: { registerCommand: () => ({}) },
};
class LanguageClient { async start() { starts += 1; } async stop() {} }
const load = Module._load;
Module._load = (name, ...more) =>
  name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...more);
const { activate } = require(process.argv[2]);
(async () => {
  const found = [];
  opened.push({ languageId: "yaml" });
  await activate({ subscriptions: [] });
  found.push(starts);
  opened.push({ languageId: "policy" });
  await Promise.all([handlers.opened(opened[1]), handlers.opened(opened[1])]);
  found.push(starts);
  await handlers.changed({ affectsConfiguration: () => true });
  found.push(starts);
  console.log(JSON.stringify(found));
})();
"""


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((VSCODE / name).read_text())
    return found


def test_manifests_wake_the_extension() -> None:
    assert "onLanguage:yaml" in _read("package.json")["activationEvents"]


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize(("settings", "starts"), [({}, [0, 1, 2]), ({"manifests": True}, [1, 1, 2])])
def test_a_server_starts_once_and_for_yaml_only_where_manifests_are_wanted(
    settings: dict[str, object], starts: list[int]
) -> None:
    script = ["node", "-e", SCRIPT, json.dumps(settings), str(VSCODE / "client.js")]
    done = run(script, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == starts


def test_the_lock_is_of_the_packages_that_are_named_with_hashes_and_no_address_of_an_index() -> None:
    named, locked = _read("package.json"), _read("package-lock.json")["packages"]
    assert {key: named[key] for key in ("dependencies", "devDependencies")} == {
        key: locked[""][key] for key in ("dependencies", "devDependencies")
    }
    packages = [one for name, one in locked.items() if name]
    assert all("integrity" in one and "resolved" not in one for one in packages)
