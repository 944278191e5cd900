"""What a policy's hash and its rules' fingerprints follow from, and what they do not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from policyengine.compiler import policy_hash
from policyengine.framework.profile import Profile
from policyengine.language.diagnostics import Source
from policyengine.language.format import format_source
from policyengine.language.parsing.tokens import tokenise
from policyengine.language.syntax import Expr, Span
from policyengine.policy_compiler import compile_files, compile_policy
from policyengine.scheduler.queue.policy_replacement import queue_changed, rules_changed
from tests.language.expressions import EXPRESSIONS
from tests.language.policies import EVERYTHING
from tests.language.trees import printed

LIBRARY = 'library "safe" {\n  param spare: memory = 2Gi\n  let two = 2\n}\n'
POLICY = 'import "safe"\npolicy "p" {\n  filter "f" { require node.free.memory >= safe.spare }\n}\n'
OTHER = 'policy "q" {\n  scheduler "q"\n  filter "f" { require node.ready }\n}\n'
OVERLAY = 'overlay "o" on "p" {\n  filter "o" { require node.ready }\n}\n'


def hashes(*texts: str, params: dict[str, object] | None = None) -> dict[str, str]:
    result = compile_files([Source(f"{at}.policy", text) for at, text in enumerate(texts)], params)
    assert not result.diagnostics, result.diagnostics
    return {profile.name: profile.policy_hash for profile in result.profiles}


def test_editing_another_policy_of_the_file_leaves_the_hash() -> None:
    edited = OTHER.replace("node.ready", "!node.unschedulable")
    assert hashes(POLICY + OTHER, LIBRARY)["p"] == hashes(POLICY + edited, LIBRARY)["p"]
    assert hashes(POLICY + OTHER, LIBRARY)["q"] != hashes(POLICY + edited, LIBRARY)["q"]


def test_editing_an_imported_library_changes_it() -> None:
    assert hashes(POLICY, LIBRARY) != hashes(POLICY, LIBRARY.replace("let two = 2", "let two = 3"))


def test_editing_what_the_library_imports_changes_it() -> None:
    over, under = 'import "base"\n' + LIBRARY, 'library "base" {\n  let x = 1\n}\n'
    assert hashes(POLICY, over, under) != hashes(POLICY, over, under.replace("1", "2"))


def test_a_library_that_is_not_imported_counts_for_nothing() -> None:
    other = 'library "other" {\n  let x = 1\n}\n'
    assert hashes(POLICY, LIBRARY) == hashes(POLICY, LIBRARY, other)


def test_an_overlay_changes_it() -> None:
    plain, overlaid = hashes(POLICY, LIBRARY), hashes(POLICY, LIBRARY, OVERLAY)
    assert plain != overlaid != hashes(POLICY, LIBRARY, OVERLAY.replace("node.ready", "!node.ready"))


def test_white_space_between_words_and_the_file_s_name_change_nothing() -> None:
    spaced = POLICY.replace("{", "\t{  ").replace(">=", "  >=  ").replace("\n", "\n\n")
    assert hashes(POLICY, LIBRARY) == hashes(spaced, LIBRARY) == hashes(LIBRARY, POLICY)


def test_the_values_of_params_count_those_of_libraries_too() -> None:
    assert hashes(POLICY, LIBRARY) == hashes(POLICY, LIBRARY, params={"safe.spare": "2048Mi"})
    assert hashes(POLICY, LIBRARY) != hashes(POLICY, LIBRARY, params={"safe.spare": "3Gi"})


# The canonical text


def canonical(text: str) -> tuple[str, ...]:
    return policy_hash.canonical(tokenise(text, ""), Span(0, len(text)))


@given(EXPRESSIONS)
@settings(max_examples=50)
def test_that_of_a_block_is_the_same_wherever_it_stands_in_its_file(tree: Expr) -> None:
    block = f'policy "p" {{ # why\n filter "f" {{ require {printed(tree)} }} }}'
    before, behind = '// first\nlibrary "l" { let a = 1, }\n', ' // last\npolicy "q" { }'
    inside = Span(len(before), len(before) + len(block))
    assert policy_hash.canonical(tokenise(before + block + behind, ""), inside) == canonical(block)


def test_a_text_and_its_formatted_form_are_one() -> None:
    text, findings = format_source(Source("a.policy", EVERYTHING))
    assert not findings
    assert canonical(text) == canonical(EVERYTHING)
    assert text != EVERYTHING


@given(EXPRESSIONS)
@settings(max_examples=100)
def test_so_is_a_policy_with_any_expression(tree: Expr) -> None:
    text = f'policy "p" {{ let a = [{printed(tree)}, {printed(tree)},] filter "f" {{ require {printed(tree)} }} }}'
    assert canonical(format_source(Source("a.policy", text))[0]) == canonical(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1, -2]", "[1 -2]"),
        ("[a, (b)]", "[a(b)]"),
        ("[a, [0]]", "[a[0]]"),
        ('{"k": a, -b - c: d}', '{"k": a - b, -c: d}'),
        ('"a b"', '"a" b'),
        ('"a  b"', '"a b"'),
        ("a.b", "a . b.c"),
        ("1 // 2", "1 // 3"),
    ],
)
def test_texts_that_mean_something_else_are_not(one: str, other: str) -> None:
    assert canonical(f"let x = {one}") != canonical(f"let x = {other}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gang g { key: a, min: 1, }", "gang g { key: a min: 1 }"),
        ('f(a, "b",\n)', 'f(a,"b")'),
        ("queue { order by a, b desc, backoff 1s .. 2s }", "queue { order by a, b desc backoff 1s..2s }"),
        ("filter f { require a, require b, }", "filter f {\n require a\n\n require b }"),
        ("require a on   error false", "require a on error false"),
        ("let a = 1 // why\nlet b = 2", "// why\nlet a = 1 let b = 2"),
    ],
)
def test_what_says_nothing_is_left_out(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


TEXT = """policy "p" {
  let team = pod.labels[?"team"].orValue("")
  param most: int = 3
  queue { order by pod.priority desc }
  filter "own" { require node.name == team }
  filter "few" { require node.podCount < most }
  score "taste" weight 2 = node.podCount > 0 ? 1 : 0
  gang "crew" when team != "" { key: team min: 2 timeout: 30s }
  test "one" {
    given node "n" { allocatable: {cpu: 4, memory: 8Gi, pods: 9}, labels: {"a": "b"} }
    given pod "p" { labels: {"team": "n"} }
    expect "p" on "n"
  }
}
"""
PLUGIN = "NodeResourcesFit"


def changed(before: Profile, after: Profile) -> set[str]:
    return {name for name in ("own", "few", PLUGIN) if rules_changed(before, after, frozenset({name}))}


@pytest.mark.parametrize(
    ("old", "new", "names", "queue"),
    [
        ("node.podCount < most", "node.podCount <= most", {"few"}, False),
        ("node.podCount < most", "node.podCount   <\n most", set(), False),
        ('  filter "few" { require node.podCount < most }\n', "", {"few"}, False),
        ("weight 2", "weight 3", set(), False),
        ('test "one"', 'test "another"', set(), False),
        ("most: int = 3", "most: int = 4", {"own", "few", PLUGIN}, True),
        ('orValue("")', 'orValue("x")', {"own", "few", PLUGIN}, True),
        ("priority desc", "priority asc", {"own", "few", PLUGIN}, True),
        ("min: 2", "min: 3", {"own", "few", PLUGIN}, True),
        ("  queue", f'  use {PLUGIN} {{ ignoredResources: ["a.b/c"] }}\n  queue', {"own", "few", PLUGIN}, True),
    ],
)
def test_a_rule_is_another_where_its_text_or_what_all_share_is(
    old: str, new: str, names: set[str], queue: bool
) -> None:
    assert old in TEXT
    before, after = compile_policy(TEXT), compile_policy(TEXT.replace(old, new))
    assert changed(before, after) == names == changed(after, before)
    assert queue_changed(before, after) is queue


def test_of_one_name_each_rule_counts() -> None:
    text = TEXT.replace('score "taste"', 'score "few"').replace('gang "crew"', 'gang "own"')
    assert changed(compile_policy(text), compile_policy(text.replace("weight 2", "weight 3"))) == {"few"}
    assert changed(compile_policy(text), compile_policy(text.replace("== team", "!= team"))) == {"own"}


def test_values_of_params_from_outside_count() -> None:
    assert changed(compile_policy(TEXT), compile_policy(TEXT, {"most": 5})) == {"own", "few", PLUGIN}


def test_a_policy_that_imports_is_another_whole() -> None:
    def compiled(text: str) -> Profile:
        library = Source("lib.policy", 'library "lib" { param spare: int = 1 }')
        result = compile_files([Source("p.policy", 'import "lib"\n' + text), library])
        assert not result.failed, result.diagnostics
        return result.profiles[0]

    assert changed(compiled(TEXT), compiled(TEXT)) == set()
    after = compiled(TEXT.replace("node.podCount < most", "node.podCount < 2"))
    assert changed(compiled(TEXT), after) == {"own", "few", PLUGIN}


def test_where_nobody_has_said_the_plugins_themselves_are_compared() -> None:
    from policyengine.plugins.registry import default_profile

    assert queue_changed(default_profile(), default_profile())
    assert not rules_changed(default_profile(), compile_policy(TEXT), frozenset({"NodeName"}))
