"""The Vim files in a real Vim: the file type is known, words have colours, and `:make` fills the quickfix list."""

import json
import os
import shutil
import sys
from pathlib import Path
from subprocess import DEVNULL, run
from typing import Any

import pytest

EDITORS = Path(__file__).parent.parent.parent / "editors"
POLICY = """policy "p" {
  filter "small" {
    require node.podCount < 1 && node.podCount < 2 else "is full"  // so it is
  }
}
"""
SCRIPT = """set nocompatible
set packpath+=~/.vim
filetype plugin indent on
syntax on
packloadall
edit x.policy
silent make!
let found = map(getqflist(), '[v:val.lnum, v:val.col, v:val.type, v:val.text]')
let colours = map([[2, 3], [2, 10], [3, 29], [3, 71]], 'synIDattr(synID(v:val[0], v:val[1], 1), "name")')
call writefile([json_encode({"type": &filetype, "colours": colours, "found": found})], "told")
qall!
"""


@pytest.fixture
def vim() -> str:
    path = shutil.which("vim.basic") or shutil.which("vim")
    if path is None or "+quickfix" not in run([path, "--version"], capture_output=True, text=True).stdout:
        pytest.skip("no vim with quickfix lists on this machine")
    return path


def told(vim: str, folder: Path, text: str) -> dict[str, Any]:
    """What Vim makes of a policy."""
    package = folder / ".vim/pack/policyengine/start/policyengine"
    shutil.copytree(EDITORS / "vim", package, dirs_exist_ok=True)
    (folder / "x.policy").write_text(text, encoding="utf-8")
    (folder / "script.vim").write_text(SCRIPT, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(folder), "PATH": path}
    run([vim, "-u", "script.vim", "-es"], cwd=folder, env=environment, stdin=DEVNULL, capture_output=True, timeout=60)
    found: dict[str, Any] = json.loads((folder / "told").read_text(encoding="utf-8"))
    return found


def test_a_policy_has_its_type_its_colours_and_its_findings_in_the_quickfix_list(vim: str, tmp_path: Path) -> None:
    result = told(vim, tmp_path, POLICY)
    assert result["type"] == "policy"
    assert result["colours"] == ["policyMember", "policyString", "policyNumber", "policyComment"]
    assert [3, 34, "w", "this is true wherever the rest holds, so it adds nothing"] in result["found"]


def test_a_mistake_is_an_error_of_the_quickfix_list(vim: str, tmp_path: Path) -> None:
    (mistake,) = told(vim, tmp_path, POLICY.replace("podCount < 2", "podCont < 2"))["found"]
    assert mistake[:3] == [3, 39, "e"]
    assert "did you mean `podCount`?" in mistake[3]
