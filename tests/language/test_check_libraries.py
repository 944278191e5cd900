"""Files that are loaded together: libraries and their imports, overlays on policies."""

from __future__ import annotations

import pytest

from policyengine.language import ir
from policyengine.language.ir.ir_walk import fields, walk
from tests.language.checking import together

SAFE = """
library "safe" {
  param spare: memory = 2Gi range [0Gi, 64Gi]
  let group = pod.labels[?"group"].orValue("")
  function room(n: node, asked: memory): bool = n.free.memory - asked >= spare
}
"""


def fine(**files: str) -> ir.Policy:
    policies, findings = together(**files)
    assert not findings, [finding.message for finding in findings]
    (policy,) = policies
    return policy


def wrong(**files: str) -> list[tuple[str, str, str]]:
    return [(one.file.removesuffix(".policy"), one.code, one.message) for one in together(**files)[1]]


# --- libraries -------------------------------------------------------------------------------------------


def test_a_policy_uses_the_names_of_a_library_in_another_file() -> None:
    found = fine(
        a=SAFE,
        b="""
            import "safe"
            policy "p" {
              filter "f" when safe.group != "" { require safe.room(node, pod.requests.memory) else "{safe.spare}" }
            }
        """,
    )
    assert [param.name for param in found.params] == ["safe.spare"]
    condition = found.filters[0].requires[0].condition
    values = {let.name: let.value for let in found.lets}
    assert {read.path for read in fields(condition, values.get)} == {
        ("node", "free", "memory"),
        ("pod", "requests", "memory"),
    }
    assert any(isinstance(p, ir.ParamRef) and p.name == "safe.spare" for p in walk(condition, values.get))


def in_a_line(count: int, members: str) -> dict[str, str]:
    """Libraries `l0`, `l1`, … of which each imports the one before, and a policy that imports the last."""
    files = {f"l{at}": f'import "l{at - 1}" library "l{at}" {{ {members} }}' for at in range(1, count)}
    files["l0"] = f'library "l0" {{ {members} }}'
    return {**files, "p": f'import "l{count - 1}" policy "p" {{ let y = l{count - 1}.x }}'}


def test_libraries_may_import_each_other_in_a_long_line() -> None:
    found = fine(**in_a_line(400, "let x = 1"))
    assert {let.name for let in found.lets} == {"l399.x", "y"}
    assert len(found.texts) == 801


def test_libraries_that_are_imported_along_many_ways_are_there_once() -> None:
    files = {
        f"l{at}{side}": f'import "l{at - 1}a" import "l{at - 1}b" library "l{at}{side}" {{ let x = 1 }}'
        for at in range(1, 40)
        for side in "ab"
    }
    files |= {f"l0{side}": f'library "l0{side}" {{ let x = 1 }}' for side in "ab"}
    found = fine(**files, p='import "l39a" policy "p" { let y = l39a.x }')
    assert len([text for text in found.texts if text[0].slice(text[1]).startswith("library")]) == 79


def test_imports_that_bring_too_much_are_told() -> None:
    _, code, message = wrong(**in_a_line(60, " ".join(f"let x{at} = {at}" for at in range(200))))[0]
    assert (code, message) == (
        "PE2019",
        "all imports together bring more than 200,000 params and lets; import what is used, and in fewer files",
    )


def test_an_alias_changes_what_is_written_and_not_what_a_param_is_called() -> None:
    found = fine(a=SAFE, b='import "safe" as s policy "p" { filter "f" { require s.spare > 0 } }')
    assert [param.name for param in found.params] == ["safe.spare"]


def test_a_library_of_the_same_file_is_imported_as_any_other() -> None:
    assert fine(a=SAFE + 'import "safe" policy "p" { filter "f" { require safe.spare > 0 } }').params
    found = wrong(a=SAFE + 'policy "p" { filter "f" { require safe.spare > 0 } }')
    assert [code for _, code, _ in found] == ["PE1001"]


def test_libraries_import_libraries_and_give_away_only_what_is_their_own() -> None:
    middle = 'import "safe" library "middle" { let twice = safe.spare * 2 }'
    found = fine(a=middle, b=SAFE, c='import "middle" policy "p" { filter "f" { require middle.twice > 0 } }')
    assert {param.name for param in found.params} == {"safe.spare"}
    assert wrong(a=middle, b=SAFE, c='import "middle" policy "p" { let a = middle.spare }') == [
        ("c", "PE1001", "`middle` has no `spare`")
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a": 'import "safety" policy "p" { let a = safety.x }', "b": SAFE}, ("a", "PE2017", "did you mean `safe`?")),
        ({"a": 'import "safe" policy "p" { let a = safe.spar }', "b": SAFE}, ("a", "PE1001", "`safe.spare`?")),
        ({"a": 'import "safe" policy "p" { let a = safe.rum(1) }', "b": SAFE}, ("a", "PE1001", "`safe` has no `rum`")),
        ({"a": 'import "safe" policy "p" { let safe = 1 }', "b": SAFE}, ("a", "PE1009", "an imported library")),
        ({"a": 'import "safe" as pod policy "p" { }', "b": SAFE}, ("a", "PE2017", "a name of the schema")),
        ({"a": 'import "my lib" policy "p" { }', "b": 'library "my lib" { }'}, ("a", "PE2017", "write `as`")),
        ({"a": 'import "safe" import "safe" policy "p" { }', "b": SAFE}, ("a", "PE2017", "is known as `safe`")),
        ({"a": 'import "safe" policy "p" { }', "b": SAFE, "c": SAFE}, ("a", "PE2017", "two libraries")),
        ({"a": SAFE + SAFE}, ("a", "PE2002", "another library is called `safe`")),
        ({"a": 'library " " { }'}, ("a", "PE2012", "a library has a name")),
    ],
)
def test_what_is_wrong_with_an_import_is_said_where_it_is_written(
    files: dict[str, str], expected: tuple[str, str, str]
) -> None:
    ((file, code, message),) = wrong(**files)
    assert (file, code) == expected[:2]
    assert expected[2] in message


def test_a_circle_of_imports_is_one_finding_that_names_it() -> None:
    found = wrong(
        a='import "b" library "a" { let x = b.y }',
        b='import "a" library "b" { let y = a.x }',
        c='import "a" policy "p" { filter "f" { require a.x > a.z } }',
    )
    assert [(code, "libraries import each other" in message) for _, code, message in found] == [("PE2017", True)]
    assert "`a` -> `b` -> `a`" in found[0][2]


def test_a_mistake_in_a_library_is_told_once_and_keeps_every_importer_back() -> None:
    policies, findings = together(
        a='library "bad" { let x = pod.nmae let y = 1 }',
        b='import "bad" policy "p" { let a = bad.x + bad.y filter "f" { require bad.x > 1 } }',
        c='policy "q" { scheduler "q" }',
    )
    assert [(one.file, one.code) for one in findings] == [("a.policy", "PE1002")]
    assert [policy.name for policy in policies] == ["q"]


def test_a_name_that_a_library_could_not_take_is_told_there_alone() -> None:
    found = wrong(a='library "l" { param node: int = 1 }', b='import "l" policy "p" { let a = l.node }')
    assert [(file, code) for file, code, _ in found] == [("a", "PE1009")]


def test_lets_of_another_file_stand_where_they_are_imported() -> None:
    text = 'import "safe"\npolicy "p" { filter "f" { require safe.group != "" } }'
    found = fine(a=SAFE, b=text)
    (group,) = found.lets
    assert group.name == "safe.group" and group.file == "a.policy"
    assert text[group.value.span.start : group.value.span.end] == 'import "safe"'


# --- overlays --------------------------------------------------------------------------------------------

SHARED = """
policy "shared" {
  let team = pod.labels[?"team"].orValue("")
  filter "room" { require node.free.cpu >= pod.requests.cpu }
}
"""
TEAM = """
overlay "web" on "shared" when team == "web" {
  param least: cpu = 1
  let big = pod.requests.cpu > least
  function enough(n: node): bool = n.free.cpu >= least
  filter "web-room" when big { require enough(node) else "needs {least}" }
  score "web-pack" weight 2 = ratio(node.used.cpu, node.allocatable.cpu)
  quota "web" when true { limit: {cpu: 8} }
  test "a web pod needs room" { given pod "p" { } expect "p" rejected by "web-room" }
}
"""


def test_an_overlay_adds_rules_under_its_own_condition() -> None:
    found = fine(a=SHARED, b=TEAM)
    assert [rule.name for rule in found.filters] == ["room", "web-room"]
    assert [(score.name, score.file) for score in found.scores] == [("web-pack", "b.policy")]
    assert [(quota.name, quota.file) for quota in found.quotas] == [("web", "b.policy")]
    for rule in (found.filters[1], found.scores[0], found.quotas[0]):
        assert rule.when is not None
        assert any(isinstance(part, ir.LetRef) and part.name == "team" for part in walk(rule.when))
    assert [param.name for param in found.params] == ["web.least"]
    assert len(found.tests) == 1


def test_the_policy_s_own_rules_are_not_the_overlay_s_business() -> None:
    found = fine(a=SHARED, b=TEAM)
    assert found.filters[0].when is None and found.filters[0].file == ""


def test_two_overlays_may_use_one_word_for_two_things() -> None:
    other = TEAM.replace('"web', '"data')
    found = fine(a=SHARED, b=TEAM, c=other)
    assert {param.name for param in found.params} == {"web.least", "data.least"}
    assert {let.name for let in found.lets if "." in let.name and "#" not in let.name} == {"web.big", "data.big"}


@pytest.mark.parametrize(
    ("overlay", "code", "part"),
    [
        ('overlay "o" on "sharde" { }', "PE2018", "did you mean `shared`?"),
        ('overlay " " on "shared" { }', "PE2012", "an overlay has a name"),
        ('overlay "o" on "shared" { } overlay "o" on "shared" { }', "PE2002", "another overlay on `shared`"),
        ('overlay "o" on "shared" { let team = 1 }', "PE1009", "a name of the policy"),
        ('overlay "o" on "shared" { filter "room" { require true } }', "PE2002", "in `a.policy`"),
        ('overlay "o" on "shared" when node.ready { }', "PE1011", "`when` reads no node"),
        ('overlay "o" on "shared" when 1 { }', "PE1005", "`when` is a bool"),
        ('overlay "o" on "shared" when now > now { quota "q" when true { limit: {cpu: 1} } }', "PE1011", "`now`"),
    ],
)
def test_what_is_wrong_with_an_overlay_is_said_where_it_is_written(overlay: str, code: str, part: str) -> None:
    policies, findings = together(a=SHARED, b=overlay)
    (found,) = findings
    assert (found.file, found.code) == ("b.policy", code)
    assert part in found.message
    assert policies == [] or code in ("PE2018", "PE2012", "PE2002")


def test_a_rule_of_an_overlay_shares_a_name_with_the_policy_s_of_another_kind() -> None:
    found = fine(a=SHARED, b='overlay "o" on "shared" { score "room" weight 1 = node.podCount > 0 ? 1 : 0 }')
    assert [rule.name for rule in (*found.filters, *found.scores)].count("room") == 2


def test_three_mistakes_in_three_files_are_three_findings() -> None:
    found = wrong(
        a='library "l" { let x = pod.nmae }',
        b=SHARED.replace("requests.cpu", "request.cpu"),
        c='overlay "o" on "shared" { quota "q" when true { limit: {cpus: 1} } }',
    )
    assert [(file, code) for file, code, _ in found] == [("a", "PE1002"), ("b", "PE1002"), ("c", "PE2012")]


def test_the_blocks_that_make_a_policy_are_known() -> None:
    found = fine(a=SAFE, b='import "safe"' + SHARED, c=TEAM)
    texts = [source.slice(span).split("{")[0].strip() for source, span in found.texts]
    assert texts == [
        'policy "shared"',
        'import "safe"',
        'library "safe"',
        'overlay "web" on "shared" when team == "web"',
    ]
