"""Definition, references and rename, in one file and across the files of a folder."""

from pathlib import Path

import pytest

from policyengine.server.language_server.navigation import (
    CannotRename,
    definition,
    highlights,
    references,
    rename,
    renamed_range,
)
from tests.server.language_server.readings import after, member, opened, span_of, training

LIBRARY = 'library "safe" {\n  let spare = node.free.cpu\n  function half(a: int): int = a / 2\n}\n'
USER = 'import "safe"\npolicy "p" {\n  let a = safe.spare\n  let b = safe.half(4)\n}\n'


def defined(text: str) -> str:
    """The text at the definition of what the cursor is on, '' where there is none."""
    _, reading, offset = opened(text)
    found = definition(reading, offset)
    return reading.source.slice(span_of(reading.document.lines, found.range)) if found is not None else ""


def renamed(text: str, name: str) -> str:
    """The text after a rename at the cursor."""
    _, reading, offset = opened(text)
    edit = rename(reading, offset, name)
    assert edit is not None
    return after(reading, edit)[Path(reading.source.file).name]


@pytest.mark.parametrize(
    ("before", "cursor", "name"),
    [
        (">= headroom", ">= head¦room", "headroom"),
        ("when gpus > 0", "when gp¦us > 0", "gpus"),
        ("needs {headroom}", "needs {head¦room}", "headroom"),
        ('by "memory-headroom"', 'by "memory¦-headroom"', '"memory-headroom"'),
        ('score("cpu-pack", "job"', 'score("cpu-¦pack", "job"', '"cpu-pack"'),
        ('expect "q" before', 'expect "¦q" before', '"q"'),
        ('expect "p" on "a"', 'expect "p" on "¦a"', '"a"'),
        ("given param headroom", "given param head¦room", "headroom"),
    ],
)
def test_a_name_leads_to_where_it_is_given(before: str, cursor: str, name: str):
    assert defined(training(before, cursor)) == name


PLACES = {
    "a variable hides nothing outside of its macro": (
        member("let a = node.pods.exists(q, q¦.restarts > 1) && pod.priority > 0"),
        2,
    ),
    "names of one test are not those of another": (
        'policy "p" {\n  test "x" { given node "a" given pod "p" expect "p" on "¦a" }\n'
        '  test "y" { given node "a" given pod "p" expect "p" on "a" }\n}\n',
        2,
    ),
    "other members may be broken": ('policy "p" {\n  let a = 1\n  let b = (\n  let c = ¦a + a\n}\n', 3),
}


@pytest.mark.parametrize(("text", "count"), PLACES.values(), ids=PLACES)
def test_a_name_is_found_wherever_it_means_the_same(text: str, count: int):
    _, reading, offset = opened(text)
    assert len(references(reading, offset, declaration=True)) == count


def test_references_leave_the_definition_out_if_asked():
    _, reading, offset = opened(training("when gpus > 0", "when gp¦us > 0"))
    assert len(references(reading, offset, declaration=True)) == len(references(reading, offset, declaration=False)) + 1
    assert len(highlights(reading, offset)) == len(references(reading, offset, declaration=True))


def test_a_param_is_renamed_wherever_it_is_named():
    text = renamed(training(">= headroom", ">= head¦room"), "spare")
    assert "headroom" not in text.replace("memory-headroom", "").replace("the headroom is", "")
    assert "param spare: memory" in text
    assert "needs {spare} spare memory" in text
    assert "given param spare = 1Gi" in text


def test_a_rule_keeps_its_quotes():
    text = renamed(training('by "memory-headroom"', 'by "memory-head¦room"'), "room to spare")
    assert 'filter "room to spare" when' in text
    assert 'by "room to spare"' in text


def test_the_range_to_rename_leaves_the_quotes_out():
    _, reading, offset = opened(training('by "memory-headroom"', 'by "memory-head¦room"'))
    found = renamed_range(reading, offset)
    assert found is not None
    range_, name = found.range, found.placeholder
    assert range_.end.character - range_.start.character == len("memory-headroom") == len(name)


HEADROOM = training(">= headroom", ">= head¦room")
RULE = training('filter "memory-headroom"', 'filter "memory¦-headroom"')


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *((HEADROOM, name) for name in ("gpus", "pod", "in", "1a", "", "a b", "a.b")),
        *((RULE, name) for name in ("", "  ", 'a"b', "a\nb", "NodeResourcesFit")),
    ],
)
def test_a_name_that_is_taken_or_cannot_be_written_is_refused(text: str, name: str):
    _, reading, offset = opened(text)
    with pytest.raises(CannotRename):
        rename(reading, offset, name)


SHARED = """policy "p" {
  gang "crew" when true { key: "k" min: 1 timeout: 9s }
  score "crew" weight 1 = 1
  filter "small" { require true }
  test "t" { given node "n" given pod "p" expect that score("crew", "p", "n") == 1 expect "p" rejected by "crew" }
}
"""


def test_rules_of_one_name_are_renamed_together():
    text = renamed(SHARED.replace('score "crew" w', 'score "cr¦ew" w'), "team")
    assert "crew" not in text
    assert text.count('"team"') == 4


def test_each_use_of_a_shared_name_leads_to_the_rule_that_is_meant():
    for use, line in (('score("crew"', 2), ('by "crew"', 1), ('score "crew" w', 2), ('gang "crew"', 1)):
        _, reading, offset = opened(SHARED.replace(use, use.replace("crew", "cr¦ew")))
        found = definition(reading, offset)
        assert found is not None
        assert found.range.start.line == line, use


def test_a_name_that_another_rule_of_the_kind_has_is_refused():
    text = (
        SHARED.replace("score", "filter", 1)
        .replace("weight 1 = 1", "{ require true }")
        .replace(' expect that score("crew", "p", "n") == 1', "")
    )
    _, reading, offset = opened(text.replace('"small"', '"sma¦ll"'))
    with pytest.raises(CannotRename, match="another filter is called `crew`"):
        rename(reading, offset, "crew")


def test_nothing_is_renamed_where_nobody_gave_a_name():
    _, reading, offset = opened(training("node.free.memory -", "no¦de.free.memory -"))
    assert rename(reading, offset, "x") is None
    assert renamed_range(reading, offset) is None


# --- several files ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "safe.policy").write_text(LIBRARY, encoding="utf-8")
    (tmp_path / "user.policy").write_text(USER, encoding="utf-8")
    return tmp_path


def test_what_a_library_has_is_defined_in_its_file(folder: Path):
    _, reading, offset = opened(USER.replace("safe.spare", "safe.spa¦re"), folder / "user.policy")
    found = definition(reading, offset)
    assert found is not None
    assert found.uri == (folder / "safe.policy").as_uri()
    assert (found.range.start.line, found.range.start.character) == (1, 6)


RENAMED = {
    "a let of a library": (
        *("safe.policy", LIBRARY.replace("let spare", "let spa¦re"), "room"),
        {"safe.policy": LIBRARY.replace("spare", "room"), "user.policy": USER.replace("spare", "room")},
    ),
    "a library, which keeps the name it is used under": (
        *("safe.policy", LIBRARY.replace('"safe"', '"sa¦fe"'), "sure"),
        {
            "safe.policy": LIBRARY.replace('"safe"', '"sure"'),
            "user.policy": USER.replace('import "safe"', 'import "sure" as safe'),
        },
    ),
    "an import, by as": (
        *("user.policy", USER.replace("safe.half", "sa¦fe.half"), "s"),
        {"user.policy": USER.replace('import "safe"', 'import "safe" as s').replace("safe.", "s.")},
    ),
}


@pytest.mark.parametrize(("file", "text", "name", "changed"), RENAMED.values(), ids=RENAMED)
def test_a_name_is_renamed_in_every_file(folder: Path, file: str, text: str, name: str, changed: dict[str, str]):
    _, reading, offset = opened(text, folder / file)
    edit = rename(reading, offset, name)
    assert edit is not None
    assert after(reading, edit) == changed


def test_what_is_open_counts_and_not_the_file(folder: Path):
    project, _, _ = opened(LIBRARY.replace("spare", "room"), folder / "safe.policy")
    _, reading, offset = opened(USER.replace("safe.spare", "safe.ro¦om"), folder / "user.policy", project)
    found = definition(reading, offset)
    assert found is not None
    assert found.uri == (folder / "safe.policy").as_uri()
