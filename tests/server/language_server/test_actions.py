"""Fixes, comments that allow, formatting, hints, outline, folding, colours; and manifests."""

from pathlib import Path

import pytest
from lsprotocol.types import CodeAction, Position, Range, TextEdit

from policyengine.commands.lsp import toolchain
from policyengine.language.diagnostics import Source
from policyengine.language.format import format_source
from policyengine.language.syntax import Span
from policyengine.server.language_server import outline
from policyengine.server.language_server.code_actions import FIX_ALL, code_actions, formatting, inlay_hints
from policyengine.server.language_server.project import Project, Reading
from tests.server.language_server.readings import TRAINING, after, findings, member, opened, span_of, training

EVERYWHERE = Range(Position(0, 0), Position(9999, 0))
MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: "😀"
data:
  other: |
    not a policy
  p.policy: |
    policy "p" {
      let 😀a = 1
      let b = nod.free.cpu
    }
"""


def acted(text: str, only: tuple[str, ...] = ()) -> dict[str, CodeAction]:
    project, reading, offset = opened(text)
    found = code_actions(reading, project.findings_in(reading), Span(offset, offset), only)
    return {action.title: action for action in found}


def done(text: str, title: str) -> str:
    """The text after an action at the cursor."""
    _, reading, _ = opened(text)
    action = acted(text)[title]
    assert action.edit is not None
    return after(reading, action.edit)[Path(reading.source.file).name]


def edited(reading: Reading, edits: list[TextEdit]) -> str:
    text, lines = reading.source.text, reading.document.lines
    for one in sorted(edits, key=lambda one: lines.offset(one.range.start), reverse=True):
        span = span_of(lines, one.range)
        text = text[: span.start] + one.new_text + text[span.end :]
    return text


# --- actions ---------------------------------------------------------------------------------------------


def test_the_fix_of_a_finding_is_an_action():
    text = member("let a = no¦d.free.cpu")
    assert done(text, "write `node` (PE1001)") == member("let a = node.free.cpu")


def test_an_opinion_can_be_allowed_with_a_reason():
    text = training("order by toInt", "order by ¦toInt")
    allowed = done(text, "allow PE3201 here, with a reason")
    assert "    // lint: allow PE3201 because say why\n    order by" in allowed
    assert "PE3201" in {one.code for one in findings(text)}
    assert "PE3201" not in {one.code for one in findings(allowed)}


def test_an_error_cannot_be_allowed():
    assert not any(title.startswith("allow") for title in acted(member("let a = no¦d.free.cpu")))


def test_all_safe_fixes_are_applied_together():
    text = member('filter "f" { require !!node.ready && !(node.zone == "a") else "b" }¦')
    found = acted(text, (FIX_ALL,))
    assert list(found) == ["apply all safe fixes"]
    assert 'require node.ready && (node.zone != "a") else' in done(text, "apply all safe fixes")


def test_only_the_kinds_that_are_asked_for_are_given():
    assert acted(member("let a = no¦d.free.cpu"), ("refactor",)) == {}


# --- formatting ------------------------------------------------------------------------------------------

UNTIDY = 'policy "p" {\nlet   a=1\n\n\n\n  let b = 2\n      let c=3 }\n'


def test_formatting_gives_the_one_style():
    _, reading, _ = opened(UNTIDY)
    edits = formatting(reading)
    assert edits is not None
    assert edited(reading, edits) == format_source(Source("a", UNTIDY))[0]


def test_formatting_a_range_leaves_the_rest():
    _, reading, _ = opened(UNTIDY)
    edits = formatting(reading, Range(Position(1, 0), Position(1, 3)))
    assert edits is not None
    text = edited(reading, edits)
    assert "  let a = 1\n" in text
    assert "let c=3" in text


def test_what_is_in_style_needs_no_edit():
    _, reading, _ = opened(TRAINING.read_text(encoding="utf-8"))
    assert formatting(reading) == []


def test_a_text_with_mistakes_is_left_alone():
    _, reading, _ = opened("policy {")
    assert formatting(reading) is None


# --- hints, outline, folding, colours --------------------------------------------------------------------


def test_hints_show_the_types_of_lets_and_the_cost_of_rules():
    _, reading, _ = opened(TRAINING.read_text(encoding="utf-8"))
    hints = {(hint.position.line, str(hint.label)) for hint in inlay_hints(reading, EVERYWHERE)}
    lines = reading.source.text.split("\n")
    labels = {lines[line].strip().split(" = ")[0]: label for line, label in hints}
    assert labels["let gpus"] == ": int"
    assert labels["let group"] == ": string"
    rules = [label for line, label in hints if lines[line].strip().startswith(("filter", "score"))]
    assert len(rules) == 2
    assert all(label.startswith("≈ ") and label.endswith(("µs", "ms")) for label in rules)
    # Of the lines that are shown.
    shown = Range(Position(7, 0), Position(8, 99))
    assert {hint.position.line for hint in inlay_hints(reading, shown)} == {7, 8}


def test_the_outline_has_the_members_of_each_block():
    _, reading, _ = opened(TRAINING.read_text(encoding="utf-8"))
    (policy,) = outline.document_symbols(reading)
    assert policy.name == "training"
    names = [child.name for child in policy.children or ()]
    assert names[:4] == ["policy-scheduler", "headroom", "group", "gpus"]
    assert {"queue", "memory-headroom", "cpu-pack", "pod-group"} <= set(names)
    # Every place lies in the one around it.
    lines = reading.document.lines
    for symbol in (policy, *(policy.children or ())):
        whole, name = span_of(lines, symbol.range), span_of(lines, symbol.selection_range)
        assert whole.start <= name.start <= name.end <= whole.end


def test_brackets_and_comments_of_several_lines_fold():
    text = '// a\n// b\npolicy "p" {\n  filter "f" {\n    require true\n  }\n  let a = (\n'
    _, reading, _ = opened(text)
    folded = {(one.start_line, one.end_line) for one in outline.folding(reading)}
    assert (3, 4) in folded
    assert (0, 1) in folded


def test_semantic_tokens_decode_to_places_of_the_text():
    _, reading, _ = opened(TRAINING.read_text(encoding="utf-8"))
    data = outline.semantic_tokens([reading])
    assert len(data) % 5 == 0
    words: dict[str, str] = {}
    line = column = 0
    for down, right, length, type_, _ in zip(*[iter(data)] * 5, strict=True):
        line, column = line + down, right if down else column + right
        start = reading.document.lines.offset(Position(line, column))
        words[reading.source.text[start : start + length]] = outline.TOKEN_TYPES[type_]
    assert words["headroom"] == "parameter"
    assert words["gpus"] == "variable"
    assert words["memory"] == "property"
    assert words["ratio"] == "function"
    assert words["orValue"] == "method"


# --- manifests -------------------------------------------------------------------------------------------


def test_a_finding_in_a_manifest_stands_at_its_yaml_line(tmp_path: Path):
    project, reading, _ = opened(MANIFEST.replace("nod", "¦nod").replace("😀a", "a"), tmp_path / "m.yaml")
    found, problem = project.findings(reading.document)
    assert problem == ""
    unknown = next(one for one in found if one.code == "PE1001")
    assert reading.document.lines.range(unknown.span) == Range(Position(10, 14), Position(10, 17))


def test_columns_behind_a_wide_character_of_a_manifest_count_both_units(tmp_path: Path):
    text = MANIFEST.replace("let 😀a = 1", 'let a = "😀" + nad')
    project, reading, _ = opened(text.replace("nad", "¦nad"), tmp_path / "m.yaml")
    unknown = next(one for one in project.findings(reading.document)[0] if "nad" in one.message)
    assert reading.document.lines.range(unknown.span).start == Position(9, len('      let a = "😀" + ') + 1)


def test_a_fix_in_a_manifest_edits_the_manifest(tmp_path: Path):
    text = MANIFEST.replace("😀a", "a").replace("nod.", "n¦od.")
    project, reading, offset = opened(text, tmp_path / "m.yaml")
    (fix,) = code_actions(reading, project.findings_in(reading), Span(offset, offset), ())
    assert fix.edit is not None
    edits = (fix.edit.changes or {})[reading.document.uri]
    lines = reading.document.lines
    span = span_of(lines, edits[0].range)
    assert (reading.document.shown.slice(span), edits[0].new_text) == ("nod", "node")


def test_a_comment_that_allows_is_indented_as_the_manifest_is(tmp_path: Path):
    policy = TRAINING.read_text(encoding="utf-8").replace("order by toInt", "order by ¦toInt")
    block = "".join(f"    {line}\n" if line else "\n" for line in policy.splitlines())
    text = f"kind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  t.policy: |\n{block}"
    project, reading, offset = opened(text, tmp_path / "m.yaml")
    found = code_actions(reading, project.findings_in(reading), Span(offset, offset), ())
    edit = next(one for one in found if one.title.startswith("allow PE3201")).edit
    assert edit is not None
    (one,) = (edit.changes or {})[reading.document.uri]
    assert one.new_text == "// lint: allow PE3201 because say why\n        "
    assert formatting(reading) is None


def test_yaml_without_policies_is_nobodys_business(tmp_path: Path):
    project = Project(toolchain())
    document = project.open((tmp_path / "a.yaml").as_uri(), "a: [", 1)
    assert project.findings(document) == ([], "")


def test_a_manifest_that_is_no_yaml_is_one_finding_at_its_top(tmp_path: Path):
    project = Project(toolchain())
    document = project.open((tmp_path / "a.yaml").as_uri(), MANIFEST + "\n  - [", 1)
    ((finding,), _) = project.findings(document)
    assert finding.span == Span(0, 0)


@pytest.mark.parametrize("setting", ['ignore = ["PE3201"]', 'ignore = "no list"'])
def test_the_settings_of_the_folder_hold(tmp_path: Path, setting: str):
    (tmp_path / "policyengine.toml").write_text(f"[lint]\n{setting}\n", encoding="utf-8")
    project, reading, _ = opened(TRAINING.read_text(encoding="utf-8"), tmp_path / "a.policy")
    found, problem = project.findings(reading.document)
    assert ("PE3201" in {one.code for one in found}) == ("no list" in setting)
    assert ("policyengine.toml" in problem) == ("no list" in setting)
