"""`lint --fix` applies what is no guess, once and for all, in files and in manifests."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.lint import lint
from policyengine.language.lint.linter import MOST_FINDINGS

BEFORE = """\
policy "t" {
  scheduler "t"
  base filters
  disable ImageLocality
  // what is left
  let unused = 5
  let used = pod.priority

  filter "f" when used = 5 and pod.namespace != "a" {
    require !!node.ready && !(node.zone == "b") && node.free.memory >= 1073741824
      && node.labels[?"beta.kubernetes.io/arch"].orValue("") in ["x", "y", "x"]
      else "no"
  }
}
"""
AFTER = """\
policy "t" {
  scheduler "t"
  base filters
  // what is left
  let used = pod.priority

  filter "f" when used == 5 && pod.namespace != "a" {
    require node.ready && (node.zone != "b") && node.free.memory >= 1Gi
      && node.labels[?"beta.kubernetes.io/arch"].orValue("") in ["x", "y"]
      else "no"
  }
}
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(lint, [str(arg) for arg in args])


def test_fixes_are_applied_until_none_is_left_and_told(tmp_path: Path) -> None:
    path = tmp_path / "a.policy"
    path.write_text(BEFORE, encoding="utf-8")
    result = run("--fix", path)
    assert path.read_text(encoding="utf-8") == AFTER
    assert f"fixed PE3604 in {path}:4: remove `disable ImageLocality`" in result.stderr
    assert result.stderr.count("fixed ") == 8
    assert "fixed " not in result.stdout
    again = run("--fix", path)
    assert "fixed " not in again.stderr
    assert path.read_text(encoding="utf-8") == AFTER


def test_lines_below_each_other_are_taken_out_together_and_more_than_lint_tells(tmp_path: Path) -> None:
    path = tmp_path / "a.policy"
    lets = "".join(f"  let a{number} = {number}\n" for number in range(MOST_FINDINGS + 50))
    path.write_text(
        f'policy "a" {{\n{lets}  let used = 1\n  filter "f" {{ require pod.priority > used else "no" }}\n}}\n'
    )
    run("--fix", path)
    assert (
        path.read_text() == 'policy "a" {\n  let used = 1\n  filter "f" { require pod.priority > used else "no" }\n}\n'
    )


def test_what_an_overlay_in_an_unnamed_file_names_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.policy"
    before = 'policy "a" {\n  let spare = 2Gi\n  let idle = 1\n  filter "f" { require node.ready else "no" }\n}\n'
    overlay = 'overlay "o" on "a" { filter "m" { require node.free.memory > spare else "no" broken } }\n'
    others = overlay.replace('"a"', '"b"').replace("spare", "idle")
    (tmp_path / "o.policy").write_text(overlay + others, encoding="utf-8")
    path.write_text(before, encoding="utf-8")
    assert "`idle` is never used" in (result := run(path)).stdout
    assert "spare" not in result.stdout
    run("--fix", path)
    assert path.read_text(encoding="utf-8") == before.replace("  let idle = 1\n", "")


def test_a_guess_is_not_applied(tmp_path: Path) -> None:
    text = 'policy "t" {\n  filter "f" { require node.redy }\n}\n'
    path = tmp_path / "a.policy"
    path.write_text(text, encoding="utf-8")
    assert "did you mean `ready`" in run("--fix", path).stdout or path.read_text(encoding="utf-8") == text
    assert path.read_text(encoding="utf-8") == text


KEPT: dict[str, tuple[str, str]] = {
    "a key that other nodes have": (
        """filter "f" { require node.labels[?"beta.kubernetes.io/arch"].orValue("") != "x" }""",
        "",
    ),
    "a comment in a list": (
        """filter "f" { require node.zone in ["a", // one
    "a", // two
    "b"] }""",
        """filter "f" { require node.zone in ["a" // one
    , // two
    "b"] }""",
    ),
    "a comment in a negation": (
        """filter "f" { require !(node.zone // where
    == "b") && !!node.ready }""",
        """filter "f" { require (node.zone // where
    != "b") && node.ready }""",
    ),
    "a comment beside a bool": (
        """filter "f" { require false // no
    == (node.podCount > 3) }""",
        """filter "f" { require !( // no
    (node.podCount > 3)) }""",
    ),
    "a comment on `on error`": (
        """filter "f" { require node.ready // now
    on error // never
    false }""",
        """filter "f" { require node.ready // now
    // never
    }""",
    ),
    "a comment behind a let": (
        """/// five
  let unused = 5 // why
  /// six
  let six = 6
  filter "f" { require node.podCount < six }""",
        """// why
  /// six
  let six = 6
  filter "f" { require node.podCount < six }""",
    ),
    "what looks like a doc comment": (
        '''let text = """
/// no comment"""
  let unused = 5
  filter "f" { require node.name != text }''',
        '''let text = """
/// no comment"""
  filter "f" { require node.name != text }''',
    ),
    "words that run together": (
        """filter "f" { require!!node.ready;require pod.name != “a”or node.ready }""",
        """filter "f" { require node.ready require pod.name != "a"|| node.ready }""",
    ),
    "a let that an overlay uses": (
        """let limit = 5 filter "f" { require node.ready }
}
overlay "o" on "t" {
  filter "g" { require node.podCount < limit }""",
        "",
    ),
    "an operator written the wrong way round": (
        """filter "f" { require node.podCount => 4 && node.podCount = 5 }""",
        """filter "f" { require node.podCount => 4 && node.podCount == 5 }""",
    ),
}
"""What is to be kept -> members of a policy, and what `--fix` makes of them; '' where it leaves them alone."""


@pytest.mark.parametrize(("members", "fixed"), KEPT.values(), ids=KEPT)
def test_a_fix_keeps_the_meaning_and_every_comment(tmp_path: Path, members: str, fixed: str) -> None:
    path = tmp_path / "a.policy"
    path.write_text(f'policy "t" {{\n  {members}\n}}\n', encoding="utf-8")
    run("--fix", path)
    assert path.read_text(encoding="utf-8") == f'policy "t" {{\n  {fixed or members}\n}}\n'


@pytest.mark.parametrize("indent", [2, 6])
def test_a_manifest_is_fixed_within_its_block(tmp_path: Path, indent: int) -> None:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}  # ours\ndata:\n  a.policy: |\n"
    path = tmp_path / "cm.yaml"

    def block(text: str) -> str:
        return "".join(f"{' ' * (2 + indent)}{line}\n" if line else "\n" for line in text.split("\n")[:-1])

    path.write_text(head + block(BEFORE) + "  note: hello\n", encoding="utf-8")
    run("--fix", path)
    assert path.read_text(encoding="utf-8") == head + block(AFTER) + "  note: hello\n"


def test_a_folded_manifest_is_left_alone(tmp_path: Path) -> None:
    text = 'kind: ConfigMap\ndata:\n  a.policy: "policy \\"t\\" { let unused = 5 }"\n'
    path = tmp_path / "cm.yaml"
    path.write_text(text, encoding="utf-8")
    assert run("--fix", path).exit_code == 1
    assert path.read_text(encoding="utf-8") == text


def test_line_endings_and_a_byte_order_mark_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.policy"
    path.write_bytes(b"\xef\xbb\xbf" + BEFORE.replace("\n", "\r\n").encode())
    run("--fix", path)
    assert path.read_bytes() == b"\xef\xbb\xbf" + AFTER.replace("\n", "\r\n").encode()
