"""`policyengine lsp` as a command; what it answers is tested in tests/server/language_server."""

import subprocess
import sys

from click.testing import CliRunner
from pytest import MonkeyPatch

from policyengine.commands import lsp
from tests.commands.process import policyengine


def test_without_the_extra_one_line_says_how_to_install_it(monkeypatch: MonkeyPatch):
    monkeypatch.setattr(lsp, "find_spec", lambda name: None if name == "pygls" else object())
    result = CliRunner().invoke(lsp.lsp, [])
    assert result.exit_code == 2
    needed = "pip install 'policyengine-scheduler[lsp]'"
    assert result.output == f"Error: the language server needs the extra `lsp`: {needed}\n"


def test_the_server_ends_when_the_editor_goes():
    assert policyengine("lsp", "--stdio", in_process=False).code == 0


def test_the_commands_that_need_no_server_import_none():
    code = "import sys; import policyengine.commands.lsp; sys.exit('pygls' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
