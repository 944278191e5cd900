import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.fmt import fmt

UGLY, NEAT = 'policy "p"{let a=1}', 'policy "p" {\n  let a = 1\n}\n'


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "a.policy"
    path.write_text(UGLY)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(fmt, [str(argument) for argument in arguments])


def test_a_file_is_written_in_the_style_once(policy: Path) -> None:
    assert run(policy).exit_code == 0
    assert policy.read_text() == NEAT
    again = run(policy)
    assert (again.exit_code, again.stdout) == (0, "")


def test_check_names_the_file_and_writes_nothing(policy: Path) -> None:
    found = run("--check", policy)
    assert (found.exit_code, found.stdout) == (1, f"would change {policy}\n")
    assert policy.read_text() == UGLY
    policy.write_text(NEAT)
    assert run("--check", policy).exit_code == 0


def test_diff_shows_what_would_change(policy: Path) -> None:
    found = run("--diff", policy)
    assert found.exit_code == 1
    assert f'-{UGLY}\n\\ No newline at end of file\n+policy "p" {{\n+  let a = 1\n+}}\n' in found.stdout
    assert policy.read_text() == UGLY


def test_dos_line_endings_and_a_byte_order_mark_are_taken_out(policy: Path) -> None:
    policy.write_bytes(b"\xef\xbb\xbf" + NEAT.replace("\n", "\r\n").encode())
    assert run("--check", policy).exit_code == 1
    assert run(policy).exit_code == 0
    assert policy.read_bytes() == NEAT.encode()


def test_a_folder_stands_for_the_policies_in_it(tmp_path: Path, policy: Path) -> None:
    inner = tmp_path / "more"
    inner.mkdir()
    (inner / "b.policy").write_text(UGLY)
    (inner / "c.txt").write_text(UGLY)
    assert run(tmp_path).exit_code == 0
    assert (policy.read_text(), (inner / "b.policy").read_text()) == (NEAT, NEAT)
    assert (inner / "c.txt").read_text() == UGLY


def test_a_mistake_is_shown_and_the_file_left_alone(policy: Path) -> None:
    policy.write_text('policy "p" { let a = ( }')
    found = run(policy)
    assert found.exit_code == 1
    assert "error[PE0106]" in found.stderr
    assert policy.read_text() == 'policy "p" { let a = ( }'


def test_a_file_that_cannot_be_read_is_unusable_input_and_the_others_are_done(tmp_path: Path, policy: Path) -> None:
    found = run(tmp_path / "none.policy", policy)
    assert found.exit_code == 2
    assert f"error: `{tmp_path / 'none.policy'}` does not exist" in found.stderr
    assert policy.read_text() == NEAT


def test_no_path_is_a_usage_error() -> None:
    assert run().exit_code == 2


def test_standard_input_is_written_to_standard_output_in_the_style() -> None:
    found = CliRunner().invoke(fmt, ["-"], input=UGLY)
    assert (found.exit_code, found.stdout, found.stderr) == (0, NEAT, "")
    found = CliRunner().invoke(fmt, ["--diff", "--stdin-filename", "a.policy", "-"], input=UGLY)
    assert found.exit_code == 1
    assert "--- a.policy" in found.stdout
    found = CliRunner().invoke(fmt, ["--check", "-"], input=NEAT)
    assert (found.exit_code, found.stdout) == (0, "")
    found = CliRunner().invoke(fmt, ["-"], input="polcy")
    assert (found.exit_code, found.stdout) == (1, "")
    assert "<stdin>:1:1" in found.stderr


def test_json_tells_of_each_file_whether_it_changes(policy: Path) -> None:
    for arguments, changed in ((["--check"], True), ([], True), ([], False)):
        found = run(*arguments, "-o", "json", policy)
        assert json.loads(found.stdout) == [{"file": str(policy), "changed": changed}]
    assert run("-o", "json", "--diff", policy).exit_code == 2


def test_a_manifest_is_no_policy_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: ConfigMap\n")
    found = run(tmp_path / "a.yaml")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "is a manifest; fmt writes policy files" in found.stderr


def test_a_file_that_is_named_twice_is_counted_once_and_as_changed(tmp_path: Path) -> None:
    (tmp_path / "a.policy").write_text('policy "a"   {}')
    result = CliRunner().invoke(fmt, ["-o", "json", str(tmp_path / "a.policy"), str(tmp_path)])
    assert json.loads(result.stdout) == [{"file": str(tmp_path / "a.policy"), "changed": True}]
