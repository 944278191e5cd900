# ruff: noqa: E501 - a mistake and its message stand on one line
import re
from pathlib import Path

import pytest

from policyengine.language import syntax
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.parse import SourceError, parse_file, read_source
from tests.language.trees import bare, brief
from tests.shared_facts import shared


def parsed(text: str) -> syntax.File:
    """The tree of a file that has no mistakes."""
    file, findings = parse_file(Source("a.policy", text))
    assert findings == []
    return file


def member(text: str) -> syntax.Member:
    """The only member of a policy."""
    (found,) = parsed(f'policy "p" {{\n{text}\n}}').policies[0].members
    return found


def mistakes(text: str) -> list[tuple[str, int, int, str]]:
    source = Source("a.policy", text)
    _, findings = parse_file(source)
    return [(found.code, *source.line_column(found.span.start), found.message) for found in findings]


def training() -> str:
    found = re.search(r"```\n(policy .*?)```", shared("language.md").read_text(), re.DOTALL)
    assert found
    return found[1]


# --- what is right -----------------------------------------------------------------------------------------


def test_the_training_policy_parses_whole() -> None:
    (policy,) = parsed(training()).policies
    assert policy.name.text == "training"
    kinds = ["Scheduler", "Param", "Let", "Let", "Queue", "Use", "Disable", "Filter", "Score", "Gang", "Test"]
    assert [type(found).__name__ for found in policy.members] == kinds


def test_a_file_holds_imports_libraries_policies_and_overlays() -> None:
    file = parsed(
        'import "safe" as s import "other"\n'
        'library "safe" { param max: int = 3 function f(a: int, b: list(string),): map(string, int) = {} }\n'
        'policy "p" {} policy "q" {}\n'
        'overlay "o" on "p" when s.max > {"a": 1}["a"] { let x = 1 }'
    )
    assert [(i.name.text, i.alias and i.alias.text) for i in file.imports] == [("safe", "s"), ("other", None)]
    assert [p.name.text for p in file.policies] == ["p", "q"]
    overlay = file.overlays[0]
    assert (overlay.name.text, overlay.policy.text) == ("o", "p")
    assert overlay.when is not None and brief(overlay.when) == "(> (. s max) ([] {'a': 1} 'a'))"
    function = file.libraries[0].members[1]
    assert isinstance(function, syntax.Function)
    assert bare(function.parameters[1].type) == bare(type_of("list", type_of("string")))


def type_of(name: str, *args: syntax.TypeRef) -> syntax.TypeRef:
    return syntax.TypeRef(span=syntax.Span(0, 0), name=name, args=args)


def test_members_need_no_lines_of_their_own() -> None:
    file = parsed(
        'policy "p" { let a = 1 let b = a score "s" weight 1 = b disable X use Y queue { backoff 1s .. 2s } }'
    )
    kinds = ["Let", "Let", "Score", "Disable", "Use", "Queue"]
    assert [type(found).__name__ for found in file.policies[0].members] == kinds


def test_a_keyword_is_a_name_where_no_keyword_is_wanted() -> None:
    names = [
        "score",
        "let",
        "filter",
        "queue",
        "when",
        "order",
        "by",
        "weight",
        "on",
        "test",
        "param",
        "share",
        "require",
        "desc",
        "min",
        "key",
    ]
    text = "\n".join(f"let {name} = {name}.{name} + {name}(1)" for name in names)
    assert len(parsed(f'policy "p" {{ {text} filter "f" when queue {{ require order }} }}').policies[0].members) == 17


def test_the_queue_has_its_fields_in_any_order_with_or_without_commas() -> None:
    found = member(
        "queue { flush 5min, order by a desc missing first, b, flush, fair by c weight {'x': 2} backoff 1s .. d }"
    )
    assert isinstance(found, syntax.Queue)
    keys = [(brief(key.value), key.descending, key.missing) for key in found.order]
    assert keys == [("a", True, "first"), ("b", False, None), ("flush", False, None)]
    assert found.fair and found.fair_weights and found.backoff and found.flush
    assert [brief(part) for part in (found.fair, found.fair_weights, *found.backoff, found.flush)] == [
        "c", "{'x': 2}", "<1s>", "d", "<5min>",
    ]  # fmt: skip


def test_a_param_has_a_range_or_values() -> None:
    ranged, listed = member("param a: int = 1 range [0, 5]"), member('param a: string = "A" values ["A", "B",]')
    assert isinstance(ranged, syntax.Param) and isinstance(listed, syntax.Param)
    assert ranged.range and [brief(bound) for bound in ranged.range] == ["0", "5"]
    assert listed.values and [brief(value) for value in listed.values] == ["'A'", "'B'"]


def test_a_filter_has_requires_with_messages_and_errors() -> None:
    found = member(
        'filter "f" when a { require b else "is {b} of {{c}} {d ? "}" : \'x\'}" on error true, require e }'.replace(
            '"}"', "'}'"
        )
    )
    assert isinstance(found, syntax.Filter)
    first, second = found.requires
    assert first.otherwise and first.on_error and not second.otherwise and not second.on_error
    parts = [part if isinstance(part, str) else brief(part) for part in first.otherwise.parts]
    assert parts == ["is ", "b", " of {c} ", "(? d '}' 'x')"]


def test_an_expression_in_a_message_keeps_its_place_in_the_file_behind_escapes() -> None:
    text = 'policy "p" { filter "f" { require a else "\\u00e9\\n {pod.name}" } }'
    found = parsed(text).policies[0].members[0]
    assert isinstance(found, syntax.Filter) and found.requires[0].otherwise
    expression = found.requires[0].otherwise.parts[1]
    assert isinstance(expression, syntax.Expr)
    assert text[expression.span.start : expression.span.end] == "pod.name"


def test_a_score_has_clauses_in_order() -> None:
    found = member('score "s" weight safe.w when a normalize minmax reverse = b on\n error 0')
    assert isinstance(found, syntax.Score) and found.normalize
    assert (found.normalize.method, found.normalize.reverse) == ("minmax", True)
    assert [brief(part) for part in (found.weight, found.value)] == ["(. safe w)", "b"]
    assert found.on_error and brief(found.on_error) == "0"


def test_the_rules_made_of_fields_have_them_by_name() -> None:
    gang = member('gang "g" when a { min: 1, key: b timeout: 60s waits: 10min }')
    quota = member('quota "q" when a { guarantee: {cpu: 4} limit: {cpu: 8} borrow: true }')
    permit = member('permit "w" { delay: 5s until: b timeout: 1min }')
    assert isinstance(gang, syntax.Gang) and gang.key and gang.min and gang.timeout and gang.waits
    assert isinstance(quota, syntax.Quota) and quota.guarantee and quota.limit and quota.borrow
    assert isinstance(permit, syntax.Permit) and permit.delay and permit.until and permit.timeout


def test_preempt_on_and_bind_are_read() -> None:
    preempt = member("preempt when a { victims: b order by victims.c, d desc, maxVictims: 3 }")
    on, bind = member('on postBind when a log "x {b}"'), member('bind { annotations: {"a/b": "c {d}", e: r\'f\'} }')
    assert isinstance(preempt, syntax.Preempt) and preempt.victims and preempt.max_victims and len(preempt.order) == 2
    assert isinstance(on, syntax.OnLog) and on.point.text == "postBind"
    assert isinstance(bind, syntax.BindAnnotations)
    assert [key.text for key, _ in bind.annotations] == ["a/b", "e"]


def test_use_takes_bare_names_as_keys_and_needs_no_commas() -> None:
    found = member('use X weight 2 { strategy: "a" weight: 3, "k": {b: [1]} }')
    assert isinstance(found, syntax.Use) and found.arguments
    assert brief(found.arguments) == "{strategy: 'a', weight: 3, 'k': {b: [1]}}"


def test_a_test_has_its_steps_in_order() -> None:
    found = member(
        'test "t" { given now "2026-01-05T18:30:00Z" given param safe.x = 3 given node "a" given pod "p" on "a" { a: 1 }\n'
        'after 10s expect "p" on "a", expect "p" before "q" expect "p" rejected expect "p" rejected on "a" by "r"\n'
        'expect "p" waits expect that placed("p") }'
    )
    assert isinstance(found, syntax.Test)
    kinds = "GivenNow GivenParam GivenNode GivenPod After ExpectOn ExpectBefore ExpectRejected ExpectRejected"
    kinds += " ExpectWaits ExpectThat"
    assert [type(step).__name__ for step in found.steps] == kinds.split()


def test_the_lines_of_a_doc_comment_right_above_belong_to_a_member() -> None:
    text = 'policy "p" {\n  /// lost\n\n  // plain\n  /// one\n  ///two  \n  let a = 1 /// behind\n  let b = 2\n}'
    assert [found.doc for found in parsed(text).policies[0].members] == ["one\ntwo", ""]


def test_a_member_knows_its_place_and_its_keywords() -> None:
    text = 'policy "p" {\r\n\tlet a = (1\r\n)  // c\r\n}'
    (found,) = parsed(text).policies[0].members
    assert text[found.span.start : found.span.end] == "let a = (1\r\n)"
    assert text[found.keyword_span.start : found.keyword_span.end] == "let"


# --- what is wrong -----------------------------------------------------------------------------------------

IN_POLICY = [
    ("filter x { require a }", "PE0101", 2, 8, "the name of a filter stands in quotes"),
    ('scheduler: "x"', "PE0101", 2, 10, "no `:` stands behind `scheduler`"),
    ('let "x" = 1', "PE0101", 2, 5, "the name of a let stands without quotes"),
    ("let x: int = 1", "PE0101", 2, 6, "a let has no type of its own; write `=`"),
    ("param x = 1", "PE0101", 2, 9, "a param needs its type before `=`, as in `param limit: int = 5`"),
    ("param x: int = 1 range [0, 1] values [1]", "PE0302", 2, 31, "a param has one `range` or one list of `values`"),
    ('filter "f" when a = 3 { require b }', "PE0102", 2, 19, "`=` does not compare; write `==`"),
    ('filter "f" { a > b }', "PE0101", 2, 14, "found `a`, expected `require` before a condition"),
    ('filter "f" { requires a }', "PE0101", 2, 14, "found `requires`, expected `require` or `}`; did you mean `require`?"),
    ('score "s" = 1', "PE0101", 2, 11, "a score needs a weight before `=`, as in `weight 1`, or `tier`"),
    ('score "s" weight 1 when a = 3 = 4', "PE0102", 2, 27, "`=` does not compare; write `==`"),
    ('score "s" weight w(a = 3) = 4', "PE0102", 2, 22, "`=` does not compare; write `==`"),
    ('score "s" when a weight 1 = 2', "PE0101", 2, 11, "the clauses of a score stand in this order: `weight` or `tier`, `when`, `normalize`, `=`"),
    ('score "s" weight 1 normalize mxa = 2', "PE0101", 2, 30, "found `mxa`, expected `max` or `minmax`; did you mean `max`?"),
    ('gang "g" { kye: a }', "PE0301", 2, 12, "a gang has no field `kye`; did you mean `key`?"),
    ('gang "g" { color: a }', "PE0301", 2, 12, "a gang has no field `color`; it has `key`, `min`, `timeout`, `waits`, `counts`, `anyScheduler`"),
    ('gang "g" { key: a key: b }', "PE0302", 2, 19, "`key` is given twice"),
    ('gang "g" { key = a }', "PE0101", 2, 16, "a field's value stands behind `:`, not `=`"),
    ('quota "q" { limit: {} }', "PE0101", 2, 11, "a quota needs `when` or `by` to say which pods it is for"),
    ('quota "q" when a { limit: 4 }', "PE0303", 2, 27, "`limit` takes a map, such as `{cpu: 4, memory: 8Gi}`"),
    ("bind { annotations: {\"a\": b} }", "PE0303", 2, 27, "an annotation's value is a string; fill in what you need with `{expr}`"),
    ("queue { flush 1s flush 2s }", "PE0302", 2, 18, "`flush` is given twice"),
    ("queue { order by a dsc }", "PE0101", 2, 20, None),
    ('filter "f" { require a else "b {c" }', "PE0206", 2, 32, "`{` has no closing `}`; a brace that is meant itself is `{{`"),
    ('filter "f" { require a else "b }" }', "PE0206", 2, 32, "`}` closes nothing here; a brace that is meant itself is `}}`"),
    ('filter "f" { require a else "{b = c}" }', "PE0102", 2, 33, "`=` does not compare; write `==`"),
    ("filtr \"f\" { require a }", "PE0108", 2, 1, "`filtr` starts no member; did you mean `filter`?"),
    ("frobnicate { a: 1 }", "PE0108", 2, 1, "`frobnicate` starts no member; a policy holds "
     "`scheduler`, `base`, `share`, `use`, `disable`, `param`, `let`, `function`, `queue`, `filter`, `score`, `gang`, "
     "`quota`, `permit`, `preempt`, `on`, `bind`, `test`"),
    ('test "t" { given nod "a" }', "PE0101", 2, 18, "found `nod`, expected `node`, `now`, `param` or `pod`; did you mean `node`?"),
    ('test "t" { expect "p" onn "a" }', "PE0101", 2, 23, "found `onn`, expected `before`, `on`, `rejected` or `waits`; did you mean `on`?"),
    (r'filter "f\x1b[2J" { require a }', "PE0207", 2, 8, "the name holds the character U+001B, which does not show; leave it out"),
    (r'filter "f\u0000" { require a }', "PE0207", 2, 8, None),
    ('filter "f\0" { require a }', "PE0207", 2, 8, None),
    ('filter "f\u202e" { require a }', "PE0207", 2, 8, None),
    (r'filter """f\ng""" { require a }', "PE0207", 2, 8, None),
    (r'scheduler "s\u2028"', "PE0207", 2, 11, None),
    (r'test "t" { given pod "p\u0007" }', "PE0207", 2, 22, None),
    (r'bind { annotations: {"a\x7f": "b"} }', "PE0207", 2, 22, None),
    ("let in = 1", "PE0101", 2, 5, "found `in`, expected a name"),
    ("let true = 1", "PE0101", 2, 5, "found `true`, expected a name"),
    ("function false(a: int): int = a", "PE0101", 2, 10, "found `false`, expected a name"),
    ("param null: int = 1", "PE0101", 2, 7, "found `null`, expected a name"),
    ('filter "f { require a }', "PE0203", 2, 8, 'the string that begins here has no closing `"` on its line'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "column", "message"), IN_POLICY)
def test_a_mistake_costs_its_member_and_gives_one_finding(
    text: str, code: str, line: int, column: int, message: str | None
) -> None:
    whole = f'policy "p" {{\n{text}\nlet last = 1\n}}\npolicy "q" {{}}'
    source = Source("a.policy", whole)
    file, findings = parse_file(source)
    assert [(found.code, *source.line_column(found.span.start)) for found in findings] == [(code, line, column)]
    assert message in (None, findings[0].message)
    assert [policy.name.text for policy in file.policies] == ["p", "q"]
    last = file.policies[0].members[-1]
    assert isinstance(last, syntax.Let) and last.name.text == "last"


FILES = [
    ("// nothing\n", "PE0110", 1, 1, "the file holds no `policy`, `library`, `overlay` or `import`"),
    ("let a = 1", "PE0109", 1, 1, "`let` stands outside of any policy, library or overlay"),
    ('polcy "p" {}', "PE0108", 1, 1, "`polcy` starts no member; did you mean `policy`?"),
    ('policy "p"', "PE0101", 1, 8, "found the end of the file, expected `{` and the members of the policy"),
    ("policy p {}", "PE0101", 1, 8, "the name of a policy stands in quotes"),
    ('policy "p" {\n  let a = 1\n', "PE0106", 1, 12, "the `{` of this policy is never closed by `}`"),
    ('policy "p" {\n  let a = 1\n\npolicy "q" {}', "PE0106", 1, 12, "the `{` of this policy is never closed by `}`"),
    ('policy "p" {\n}\nlet a = 1\nlet b = 2', "PE0107", 3, 1, "`let` stands outside of the policy: the `}` before it closes it"),
    ('policy "p" {\nfilter "f" { require a }}\nlet a = 1\n}', "PE0107", 3, 1, "`let` stands outside of the policy: the `}` before it closes it"),
    ('policy "p" {}\n}', "PE0107", 2, 1, "`}` closes nothing"),
    ('library "l" {\n  queue { flush 1s }\n}', "PE0109", 2, 3, "a library has no `queue`: it holds `param`, `let`, `function`"),
    ('import safe', "PE0101", 1, 8, "the name of an import stands in quotes"),
    ('overlay "o" { let a = 1 }', "PE0101", 1, 9, "found the end of the overlay behind the string `\"o\"`, expected `on`"),
    ("{}", "PE0108", 1, 1, "`{` starts no member; a file holds `policy`, `library`, `overlay`, `import`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "column", "message"), FILES)
def test_a_file_put_together_wrongly_gives_one_finding(
    text: str, code: str, line: int, column: int, message: str
) -> None:
    assert mistakes(text) == [(code, line, column, message)]


def test_three_independent_mistakes_give_three_findings() -> None:
    text = 'policy "p" {\n  let a = (1\n  filter "f" { require a = 2 }\n  score "s" weight 1 = and\n  let b = 5x\n}'
    found = mistakes(text.replace("= and", "= a and b"))
    assert [(code, line) for code, line, _, _ in found] == [("PE0106", 2), ("PE0102", 3), ("PE0103", 4), ("PE0201", 5)]


def test_a_block_remembers_what_its_broken_members_would_have_defined() -> None:
    file, _ = parse_file(Source("", 'policy "p" { let a = (\n filter "f" { require = }\n let c = 1\n test "t" { x } }'))
    assert file.policies[0].broken == ("a", "f")


def test_a_policy_with_a_broken_head_keeps_its_members() -> None:
    file, findings = parse_file(Source("", "policy p {\n let a = 1\n}"))
    assert len(findings) == 1
    assert len(file.policies[0].members) == 1


def test_the_hundredth_mistake_is_the_last_that_is_shown() -> None:
    found = mistakes('policy "p" {\n' + "let a = (\n" * 300 + "}")
    assert len(found) == 101
    assert found[-1][0] == "PE0404"


def test_dos_line_endings_tabs_and_a_byte_order_mark_are_white_space() -> None:
    text = '\ufeffpolicy "p" {\r\n\tlet a = 1\r\n\tlet b = a\r\n}\r\n'
    assert len(parsed(text).policies[0].members) == 2
    assert mistakes(text.replace("= a", "= a =")) == [("PE0102", 3, 12, "`=` does not compare; write `==`")]


# --- files that are none -----------------------------------------------------------------------------------


def refusal(path: Path) -> str:
    with pytest.raises(SourceError) as error:
        read_source(path)
    return str(error.value)


def test_a_file_that_cannot_be_a_policy_is_refused_in_one_sentence(tmp_path: Path) -> None:
    raw = {"empty": b"", "blank": b" \n", "big": b"#" * (1024 * 1024 + 1), "latin": b"// a\n// \xe9\n"}
    for name, content in raw.items():
        (tmp_path / name).write_bytes(content)
    assert refusal(tmp_path) == f"`{tmp_path}` is a folder, not a policy file"
    assert refusal(tmp_path / "a\0b").endswith("is no file name")
    for name, why in {
        "none": "does not exist",
        "empty": "is empty",
        "blank": "is empty",
        "big": "is larger than 1 MiB, the most a policy file may have",
        "latin": "is not UTF-8: byte 0xe9 on line 2",
    }.items():
        assert refusal(tmp_path / name) == f"`{tmp_path / name}` {why}"


def test_a_file_of_exactly_one_mebibyte_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.policy"
    path.write_bytes(b'\xef\xbb\xbfpolicy "p" {}'.ljust(1024 * 1024))
    source = read_source(path)
    assert source.text.startswith("policy")
    assert parse_file(source)[1] == list[Diagnostic]()
