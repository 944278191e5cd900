"""`policyengine completion SHELL`, read by a real shell where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from policyengine.commands.completion import completion
from policyengine.commands.main import COMMANDS, cli

CALL = "from policyengine.commands.main import main; main()"


def completed(*words: str) -> list[str]:
    """What a shell would be offered for the last word."""
    complete = ShellComplete(cli, {}, "policyengine", "")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


def test_commands_flags_and_values_are_offered() -> None:
    assert completed("") == sorted(COMMANDS)
    assert completed("ex") == ["explain", "extender"]
    assert {"--cluster", "--policy"} <= set(completed("explain", "--"))
    assert completed("explain", "-o", "j") == ["json"]
    assert completed("completion", "") == ["bash", "zsh", "fish"]


def test_no_command_is_imported_to_offer_the_commands() -> None:
    watched = "import atexit, sys; atexit.register(lambda: print('policyengine.commands.explain' in sys.modules))"
    asked = {"_POLICYENGINE_COMPLETE": "bash_complete", "COMP_WORDS": "policyengine e", "COMP_CWORD": "1"}
    call = [sys.executable, "-c", f"{watched}; {CALL}"]
    told = subprocess.run(call, env=os.environ | asked, capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == ["plain,explain", "plain,extender", "False"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_by_what_is_printed(tmp_path: Path) -> None:
    program = tmp_path / "policyengine"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{CALL}"\n', encoding="utf-8")
    program.chmod(0o755)
    script = CliRunner().invoke(completion, ["bash"]).stdout
    asks = 'COMP_WORDS=(policyengine ex); COMP_CWORD=1; _policyengine_completion "$0"; echo "${COMPREPLY[@]}"'
    told = subprocess.run(["bash", "-c", script + asks, str(program)], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["explain", "extender"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_is_printed_is_read_by_the_shell(shell: str, tmp_path: Path) -> None:
    told = CliRunner().invoke(completion, [shell])
    assert told.exit_code == 0
    assert "_POLICYENGINE_COMPLETE" in told.stdout and "policyengine" in told.stdout
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "completion"
    script.write_text(told.stdout, encoding="utf-8")
    subprocess.run([program, "-n", str(script)], check=True)


def test_another_shell_is_a_usage_error() -> None:
    told = CliRunner().invoke(completion, ["tcsh"])
    assert told.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in told.output
