"""What is offered where the cursor stands, in texts that are hardly ever whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language.checking.log_bind import POINTS
from policyengine.language.parsing.member_actions import FIELDS_OF
from policyengine.language.schema import OBJECTS, ROOTS
from policyengine.plugins.facts import plugin_facts
from tests.server.language_server.readings import TRAINING, completed, member, training

TYPED = ("", ".", ".?", '"', "{", "(", "node.", 'test "t" { given ', "[?", "\U0001f600", "'''")


def test_fields_of_a_path_come_from_the_schema():
    assert set(OBJECTS["node"].fields) <= set(completed(training("require node.free.memory", "require node.¦")))


def test_a_field_says_its_type_and_meaning():
    item = completed(training("require node.free.memory", "require node.¦"))["podCount"]
    assert item.detail == "int"
    assert "how many pods stand on the node" in item.documentation.value


def test_fields_are_offered_where_a_bracket_is_still_open():
    assert "memory" in completed(training("100 * ratio(node.used.cpu", "100 * ratio(node.used.¦"))
    assert "memory" in completed(member('filter "f" { require ratio(node.free.¦'))


def test_fields_are_offered_between_two_members_that_are_broken():
    text = 'policy "p" {\n  let a = = 1\n  let b = node.free.¦\n  let c = (\n}\n'
    assert "memory" in completed(text)


def test_what_is_written_already_is_replaced():
    item = completed(training("require node.free.memory -", "require node.free.me¦mory -"))["memory"]
    assert item.text_edit.new_text == "memory"
    assert item.text_edit.range.end.character - item.text_edit.range.start.character == len("memory")


def test_methods_that_take_the_value_are_offered_and_no_others():
    methods = completed(member("let a = pod.name.¦"))
    assert {"startsWith", "contains", "matches"} <= set(methods)
    assert "orValue" not in methods
    assert "orValue" in completed(member('let a = pod.labels[?"a"].¦'))


def test_macros_are_offered_on_lists():
    assert {"exists", "filter", "map"} <= set(completed(member("let a = node.pods.¦")))


def test_the_variable_of_a_macro_is_a_name_with_fields():
    assert "p" in completed(member("let a = node.pods.exists(p, ¦)"))
    assert "restarts" in completed(member("let a = node.pods.exists(p, p.¦)"))


def test_the_parameters_of_a_function_are_names():
    assert "x" in completed(member("function f(x: int): int = ¦1"))


def test_an_expression_begins_with_names_of_the_policy_the_schema_and_functions():
    found = set(completed(training("require node.free", "require ¦node.free")))
    assert {"headroom", "group", "gpus", "ratio", "clamp", "true"} | (set(ROOTS) - {"victim"}) <= found
    assert "victim" not in found


def test_a_victim_is_there_in_preempt():
    assert "victim" in completed(member("preempt { victims: ¦true }"))


def test_fields_are_offered_in_what_is_filled_into_a_message():
    assert "namespace" in completed(training("needs {headroom}", "needs {pod.¦}"))
    assert "headroom" in completed(training("needs {headroom}", "needs {¦"))


def test_members_are_offered_where_one_may_begin():
    found = completed('policy "p" {\n  scheduler "s"\n  ¦\n}\n')
    assert {"filter", "score", "gang", "queue", "test", "let"} <= set(found)
    assert "require" in found["filter"].text_edit.new_text


def test_a_library_takes_fewer_members_than_a_policy():
    assert set(completed('library "l" {\n  ¦\n}\n')) == {"param", "let", "function"}


def test_blocks_are_offered_at_the_level_of_the_file():
    assert {"policy", "library", "overlay", "import"} <= set(completed("¦\n"))


@pytest.mark.parametrize("rule", FIELDS_OF)
def test_the_fields_of_a_member_are_offered(rule: str):
    head = rule if rule == "bind" else f'{rule} "x" when true'
    assert set(FIELDS_OF[rule]) <= set(completed(member(f"{head} {{\n    ¦\n  }}")))


def test_clauses_are_offered_by_the_grammar():
    assert set(completed(training('score "cpu-pack" weight 3', 'score "cpu-pack" weight 3 ¦'))) == {"when", "normalize"}
    assert "backoff" in completed(training("order by", "¦ order by"))


@pytest.mark.parametrize("keyword", ["use", "disable"])
def test_plugins_are_offered_behind_use_and_disable(keyword: str):
    assert set(completed(member(f"{keyword} ¦"))) >= set(plugin_facts())


def test_a_plugins_arguments_come_from_its_schema():
    assert set(completed(member("use NodeResourcesFit { ¦ }"))) == set(
        plugin_facts()["NodeResourcesFit"].arguments["properties"]
    )
    assert "MostAllocated" in completed(member('use NodeResourcesFit { strategy: "¦" }'))


def test_points_are_offered_behind_on():
    assert set(POINTS) <= set(completed(member('on ¦ log "x"')))


def test_types_are_offered_behind_a_colon():
    assert {"memory", "int", "duration", "list"} <= set(completed(member("param a: ¦ = 1")))


@pytest.mark.parametrize(
    "place", ['pod.labels[?"¦"]', 'node.labels["¦', 'node.domain("¦").pods', 'pod.nodeSelector[?"¦"]']
)
def test_well_known_labels_are_offered_as_keys(place: str):
    assert "topology.kubernetes.io/zone" in completed(member(f"let a = {place}"))


def test_labels_of_a_given_node_are_offered():
    assert "kubernetes.io/arch" in completed(member('test "t" { given node "a" { labels: {"¦": "x"} } }'))


def test_keys_used_in_the_file_are_offered_again():
    assert "podGroup" in completed(training('pod.labels[?"minAvailable"]', 'pod.labels[?"¦"]'))


def test_names_of_a_test_are_offered_in_its_expectations():
    assert set(completed(training('expect "q" before "p"', 'expect "¦" before "p"'))) == {"p", "q"}
    assert set(completed(training('expect "p" on "a"', 'expect "p" on "¦"'))) == {"a"}
    assert {"memory-headroom", "NodeResourcesFit"} <= set(completed(training('by "memory-headroom"', 'by "¦"')))
    assert set(completed(training('score("cpu-pack",', 'score("¦",'))) == {"cpu-pack"}


def test_fields_of_a_given_pod_are_offered():
    found = completed(member('test "t" { given pod "p" { ¦ } }'))
    assert {"labels", "requests", "tolerations", "priority"} <= set(found)
    assert "qos" not in found
    assert {"operator", "effect"} <= set(completed(member('test "t" { given pod "p" { tolerations: [{ ¦ }] } }')))


def test_what_a_library_has_is_offered_behind_its_name():
    text = 'import "safe"\nlibrary "safe" {\n  let x = 1\n  function f(a: int): int = a\n}\n'
    assert set(completed(text + member("let a = safe.¦"))) == {"x", "f"}
    assert "safe" in completed(text + member("let a = ¦1"))
    assert "safe" in completed('import "¦"\nlibrary "safe" {}\n')


def test_nothing_is_offered_in_a_comment():
    assert completed(member("// node.¦")) == {}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_place_in_a_text_cut_short_anywhere_raises(data: st.DataObject):
    text = TRAINING.read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 80)))
    typed = data.draw(
        st.sampled_from(["", ".", ".?", '"', "{", "(", "node.", 'test "t" { given ', "[?", "\U0001f600", "'''"])
    )
    assert isinstance(completed(f"{text[:start]}{typed}¦{text[end:]}"), dict)


def test_a_given_that_names_neither_node_nor_pod_has_no_fields():
    assert "labels" not in completed(member('test "t" { given { ¦ } }'))
