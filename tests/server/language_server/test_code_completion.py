"""What is offered where the cursor stands, in texts that are hardly ever whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language.checking.setting_checks import POINTS
from policyengine.language.parsing.member_actions import FIELDS_OF
from policyengine.language.schema import OBJECTS, ROOTS
from policyengine.plugins.facts import plugin_facts
from tests.server.language_server.readings import TRAINING, completed, member, training

TYPED = ("", ".", ".?", '"', "{", "(", "node.", 'test "t" { given ', "[?", "\U0001f600", "'''")


USER = 'import "safe"\nlibrary "safe" {\n  let x = 1\n  function f(a: int): int = a\n}\n'
ZONE, ARCH = "topology.kubernetes.io/zone", "kubernetes.io/arch"
OFFERED = {
    "fields, where a bracket of many is still open": (
        training("100 * ratio(node.used.cpu", "100 * ratio(node.used.¦"),
        {"memory"},
    ),
    "fields, where the rest is not written": (member('filter "f" { require ratio(node.free.¦'), {"memory"}),
    "fields, in a member whose fields are missing": (member('gang "g" when node.free.¦'), {"memory"}),
    "fields, between two members that are broken": (
        'policy "p" {\n  let a = = 1\n  let b = node.free.¦\n  let c = (\n}\n',
        {"memory"},
    ),
    "macros, on lists": (member("let a = node.pods.¦"), {"exists", "filter", "map"}),
    "the variable of a macro": (member("let a = node.pods.exists(p, ¦)"), {"p"}),
    "the fields of a macro's variable": (member("let a = node.pods.exists(p, p.¦)"), {"restarts"}),
    "the parameters of a function": (member("function f(x: int): int = ¦1"), {"x"}),
    "the victim, in preempt": (member("preempt { victims: ¦true }"), {"victim"}),
    "fields, in what is filled into a message": (training("needs {headroom}", "needs {pod.¦}"), {"namespace"}),
    "names, in what is filled into a message": (training("needs {headroom}", "needs {¦"), {"headroom"}),
    "blocks, at the level of the file": ("¦\n", {"policy", "library", "overlay", "import"}),
    "points, behind on": (member('on ¦ log "x"'), set(POINTS)),
    "types, behind a colon": (member("param a: ¦ = 1"), {"memory", "int", "duration", "list"}),
    "labels of pods": (member('let a = pod.labels[?"¦"]'), {ZONE}),
    "labels of nodes": (member('let a = node.labels["¦'), {ZONE}),
    "labels of domains": (member('let a = node.domain("¦").pods'), {ZONE}),
    "labels of node selectors": (member('let a = pod.nodeSelector[?"¦"]'), {ZONE}),
    "labels of a given node": (member('test "t" { given node "a" { labels: {"¦": "x"} } }'), {ARCH}),
    "clauses of the grammar": (training("order by", "¦ order by"), {"backoff"}),
    "the values of a plugin's argument": (member('use NodeResourcesFit { strategy: "¦" }'), {"MostAllocated"}),
    "rules and plugins that refuse, in a test": (
        training('by "memory-headroom"', 'by "¦"'),
        {"memory-headroom", "NodeResourcesFit"},
    ),
    "the fields of a toleration": (
        member('test "t" { given pod "p" { tolerations: [{ ¦ }] } }'),
        {"operator", "effect"},
    ),
    "libraries, where an expression begins": (USER + member("let a = ¦1"), {"safe"}),
    "libraries, to be imported": ('import "¦"\nlibrary "safe" {}\n', {"safe"}),
    "keys used in the file": (training('pod.labels[?"minAvailable"]', 'pod.labels[?"¦"]'), {"podGroup"}),
}


EXACTLY = {
    "members of a library": ('library "l" {\n  ¦\n}\n', {"param", "let", "function"}),
    "clauses of a score": (training('score "cpu-pack" weight 3', 'score "cpu-pack" weight 3 ¦'), {"when", "normalize"}),
    "arguments of a plugin": (
        member("use NodeResourcesFit { ¦ }"),
        set(plugin_facts()["NodeResourcesFit"].arguments["properties"]),
    ),
    "pods of a test": (training('expect "q" before "p"', 'expect "¦" before "p"'), {"p", "q"}),
    "nodes of a test": (training('expect "p" on "a"', 'expect "p" on "¦"'), {"a"}),
    "rules that score": (training('score("cpu-pack",', 'score("¦",'), {"cpu-pack"}),
    "what a library has": (USER + member("let a = safe.¦"), {"x", "f"}),
    "what replaces an error, behind a score": (member('score "s" weight 1 = 1 ¦'), {"on error"}),
    "nothing, in a comment": (member("// node.¦"), set()),
    "nothing, of an object outside of every block": ("node.¦", set()),
}


@pytest.mark.parametrize(("text", "labels"), EXACTLY.values(), ids=EXACTLY)
def test_nothing_else_is_offered(text: str, labels: set[str]):
    assert set(completed(text)) == labels


@pytest.mark.parametrize(("text", "labels"), OFFERED.values(), ids=OFFERED)
def test_what_may_stand_at_the_cursor_is_offered(text: str, labels: set[str]):
    assert labels <= set(completed(text))


def test_fields_of_a_path_come_from_the_schema():
    assert set(OBJECTS["node"].fields) <= set(completed(training("require node.free.memory", "require node.¦")))


def test_a_field_says_its_type_and_meaning():
    item = completed(training("require node.free.memory", "require node.¦"))["podCount"]
    assert item.detail == "int"
    assert "how many pods stand on the node" in item.documentation.value


def test_what_is_written_already_is_replaced():
    item = completed(training("require node.free.memory -", "require node.free.me¦mory -"))["memory"]
    assert item.text_edit.new_text == "memory"
    assert item.text_edit.range.end.character - item.text_edit.range.start.character == len("memory")


def test_methods_that_take_the_value_are_offered_and_no_others():
    methods = completed(member("let a = pod.name.¦"))
    assert {"startsWith", "contains", "matches"} <= set(methods)
    assert "orValue" not in methods
    assert "orValue" in completed(member('let a = pod.labels[?"a"].¦'))


def test_an_expression_begins_with_names_of_the_policy_the_schema_and_functions():
    found = set(completed(training("require node.free", "require ¦node.free")))
    assert {"headroom", "group", "gpus", "ratio", "clamp", "true"} | (set(ROOTS) - {"victim"}) <= found
    assert "victim" not in found


def test_members_are_offered_where_one_may_begin():
    found = completed('policy "p" {\n  scheduler "s"\n  ¦\n}\n')
    assert {"filter", "score", "gang", "queue", "test", "let"} <= set(found)
    assert "require" in found["filter"].text_edit.new_text


@pytest.mark.parametrize("rule", FIELDS_OF)
def test_the_fields_of_a_member_are_offered(rule: str):
    head = rule if rule == "bind" else f'{rule} "x" when true'
    assert set(FIELDS_OF[rule]) <= set(completed(member(f"{head} {{\n    ¦\n  }}")))


@pytest.mark.parametrize("keyword", ["use", "disable"])
def test_plugins_are_offered_behind_use_and_disable(keyword: str):
    assert set(completed(member(f"{keyword} ¦"))) >= set(plugin_facts())


def test_fields_of_a_given_pod_are_offered():
    found = completed(member('test "t" { given pod "p" { ¦ } }'))
    assert {"labels", "requests", "tolerations", "priority"} <= set(found)
    assert "qos" not in found


@settings(max_examples=40)
@given(st.data())
def test_no_place_in_a_text_cut_short_anywhere_raises(data: st.DataObject):
    text = TRAINING.read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 80)))
    typed = data.draw(st.sampled_from(TYPED))
    assert isinstance(completed(f"{text[:start]}{typed}¦{text[end:]}"), dict)


def test_a_given_that_names_neither_node_nor_pod_has_no_fields():
    assert "labels" not in completed(member('test "t" { given { ¦ } }'))
