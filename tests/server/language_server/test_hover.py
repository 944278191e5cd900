"""What is said of a place: types, meanings, comments, pages."""

import pytest

from policyengine.server.language_server.hover import hover
from tests.server.language_server.readings import member, opened, training


def said(text: str) -> str:
    """What is shown at the cursor, '' for nothing."""
    project, reading, offset = opened(text)
    found = hover(reading, offset, project.findings_in(reading))
    return found.contents.value if found is not None else ""


def test_a_field_has_its_type_and_meaning():
    text = said(training("node.free.memory -", "node.fr¦ee.memory -"))
    assert "node.free" in text
    assert "allocatable less used; may be negative" in text


def test_the_type_of_a_field_is_what_the_checker_says():
    assert "pod.labels: map(string, string)" in said(training('pod.labels[?"podGroup"]', 'pod.lab¦els[?"podGroup"]'))


def test_a_param_is_shown_with_its_bounds_and_its_comment():
    text = said(training(">= headroom", ">= head¦room"))
    assert "param headroom: memory = 2Gi range [0Gi, 64Gi]" in text
    assert "What a node with accelerators keeps free" in text


def test_a_let_is_shown_with_its_type():
    assert "let gpus: int" in said(training("when gpus > 0", "when gp¦us > 0"))


def test_a_let_has_a_type_where_another_member_is_broken():
    assert "let a: int" in said('policy "p" {\n  let ¦a = pod.priority\n  let b = (\n}\n')


def test_the_variable_of_a_macro_has_the_type_of_the_elements():
    assert "q: clusterPod" in said(member("let a = node.pods.exists(q, ¦q.restarts > 1)"))


def test_a_field_in_the_body_of_a_function_has_a_type():
    assert "restarts: int" in said(member("function f(a: pod): bool = node.pods.exists(q, q.rest¦arts > 1)"))


def test_a_function_of_the_language_has_its_signatures():
    assert "ratio(cpu, cpu): double" in said(training("100 * ratio(", "100 * rat¦io("))


def test_a_function_of_the_policy_has_its_signature():
    text = 'policy "p" {\n  /// Half of it.\n  function half(a: int): int = a / 2\n  let b = ha¦lf(4)\n}\n'
    assert "function half(a: int): int" in said(text)
    assert "Half of it." in said(text)


def test_a_plugin_is_shown_with_its_arguments():
    text = said(training("use NodeResourcesFit", "use Node¦ResourcesFit"))
    assert "filters and scores, weight 1 by default" in text
    assert "`strategy`, one of `LeastAllocated`, `MostAllocated`" in text
    assert "one of `LeastAllocated`" in said(training("{ strategy", "{ stra¦tegy"))


def test_a_keyword_says_what_it_begins():
    assert "`filter" in said(training('filter "memory', 'fil¦ter "memory'))


def test_a_finding_shows_its_page():
    assert "**PE1001**" in said(member("let a = no¦thing"))


def test_a_rule_is_shown_where_a_test_names_it():
    assert 'filter "memory-headroom"' in said(training('by "memory-headroom"', 'by "memory-¦headroom"'))


@pytest.mark.parametrize("text", ["¦", "// comm¦ent\n", member("¦"), 'policy "p" {\n  let a = 1 +  ¦ 2\n}\n'])
def test_nothing_is_said_where_nothing_stands(text: str):
    assert "let a = 1 +" not in said(text)
