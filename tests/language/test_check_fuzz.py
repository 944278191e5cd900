"""No tree and no text makes the checker raise, and what it lets through is whole."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from policyengine.language import ir, syntax
from policyengine.language.check import check, check_files
from policyengine.language.diagnostics import CODES, Diagnostic, Severity, Source, has_errors
from policyengine.language.ir.ir_walk import walk
from policyengine.language.parse import parse_file
from policyengine.language.types import Kind
from tests.language.checking import PLUGINS
from tests.language.expressions import AT, EXPRESSIONS
from tests.language.members import FILES
from tests.language.policies import damaged
from tests.language.typed import sources

NAMES = st.sampled_from(["a", "b", "pod", "x_1", "NodeName", ""]).map(lambda text: syntax.NameText(span=AT, text=text))
TYPES = st.recursive(
    st.sampled_from(["int", "cpu", "string", "nothing"]).map(lambda name: syntax.TypeRef(span=AT, name=name)),
    lambda inner: st.builds(
        lambda name, args: syntax.TypeRef(span=AT, name=name, args=tuple(args)),
        st.sampled_from(["list", "map", "optional", "int"]),
        st.lists(inner, max_size=2),
    ),
    max_leaves=3,
)
MAYBE = st.none() | EXPRESSIONS
TEMPLATES = st.lists(st.text(max_size=3) | EXPRESSIONS, max_size=2).map(
    lambda parts: syntax.Template(span=AT, parts=tuple(parts))
)
REQUIRES = st.builds(
    lambda condition, text, error: syntax.Require(span=AT, condition=condition, otherwise=text, on_error=error),
    EXPRESSIONS,
    st.none() | TEMPLATES,
    MAYBE,
)
MEMBERS = st.one_of(
    st.builds(lambda name, value: syntax.Let(span=AT, name=name, value=value), NAMES, EXPRESSIONS),
    st.builds(
        lambda name, type_, value, bounds, values: syntax.Param(
            span=AT, name=name, type=type_, default=value, range=bounds, values=values
        ),
        NAMES,
        TYPES,
        EXPRESSIONS,
        st.none() | st.tuples(EXPRESSIONS, EXPRESSIONS),
        st.none() | st.lists(EXPRESSIONS, max_size=2).map(tuple),
    ),
    st.builds(
        lambda name, when, requires: syntax.Filter(span=AT, name=name, when=when, requires=tuple(requires)),
        NAMES,
        MAYBE,
        st.lists(REQUIRES, max_size=2),
    ),
    st.builds(
        lambda name, weight, when, how, value, error: syntax.Score(
            span=AT, name=name, weight=weight, when=when, normalize=how, value=value, on_error=error
        ),
        NAMES,
        EXPRESSIONS,
        MAYBE,
        st.none()
        | st.builds(
            syntax.Normalize, span=st.just(AT), method=st.sampled_from(["max", "minmax"]), reverse=st.booleans()
        ),
        EXPRESSIONS,
        MAYBE,
    ),
    st.builds(
        lambda name, parts: syntax.Gang(
            span=AT, name=name, when=parts[0], key=parts[1], min=parts[2], timeout=parts[3], waits=parts[4]
        ),
        NAMES,
        st.tuples(MAYBE, MAYBE, MAYBE, MAYBE, MAYBE),
    ),
    st.builds(
        lambda keys, ends: syntax.Queue(
            span=AT,
            order=tuple(syntax.OrderKey(span=AT, value=key) for key in keys),
            fair=ends[0],
            backoff=ends[1],
            flush=ends[2],
        ),
        st.lists(EXPRESSIONS, max_size=2),
        st.tuples(MAYBE, st.none() | st.tuples(EXPRESSIONS, EXPRESSIONS), MAYBE),
    ),
    st.builds(lambda value: syntax.Share(span=AT, value=value), EXPRESSIONS),
    st.builds(lambda name: syntax.Base(span=AT, name=name), NAMES),
    st.builds(lambda name, weight: syntax.Use(span=AT, plugin=name, weight=weight), NAMES, MAYBE),
)


def expressions(value: Any) -> list[ir.Expr]:
    """Every expression within a checked policy."""
    if isinstance(value, ir.Expr):
        return list(walk(value))
    if isinstance(value, tuple):
        return [expr for item in value for expr in expressions(item)]
    if isinstance(value, Struct):
        return [expr for name in value.__struct_fields__ for expr in expressions(getattr(value, name))]
    return []


def survives(file: syntax.File, source: Source) -> list[Diagnostic]:
    policies, found = check(file, source, PLUGINS)
    assert len(found) <= 101
    for finding in found:
        assert finding.code in CODES
        assert finding.severity is Severity.ERROR
        assert "\n" not in finding.message
        assert len(finding.message) < 500
    for policy in policies:
        for expr in expressions(policy):
            assert expr.type.kind not in (Kind.ERROR, Kind.DYN)
    assert has_errors(found) or len(policies) == len(file.policies)
    return found


@given(st.lists(MEMBERS, max_size=4), NAMES)
@settings(max_examples=200, deadline=None)
def test_a_random_policy_gives_findings_only(members: list[syntax.Member], name: syntax.NameText) -> None:
    policy = syntax.Policy(span=AT, name=name, members=tuple(members))
    survives(syntax.File(policies=(policy,)), Source("a.policy", ""))


@given(damaged())
@settings(max_examples=100, deadline=None)
def test_a_damaged_policy_gives_findings_only(text: str) -> None:
    source = Source("a.policy", text)
    file, wrong = parse_file(source)
    policies, _ = check(file, source, PLUGINS)
    assert not (wrong and policies and file.policies[0].broken)


@given(sources())
@settings(max_examples=150, deadline=None)
def test_an_expression_made_by_its_type_checks_or_folds_to_an_error(text: str) -> None:
    source = Source("a.policy", f'policy "p" {{ let it = {text} }}')
    file, wrong = parse_file(source)
    assert not wrong
    assert {finding.code for finding in survives(file, source)} <= {"PE1006"}


def test_a_file_of_mistakes_is_checked_in_good_time() -> None:
    text = 'policy "p" {' + "\n".join(f"let x{at} = y{at} + x{(at * 7) % 4000}" for at in range(4000)) + "}"
    source = Source("a.policy", text)
    file, wrong = parse_file(source)
    assert not wrong
    assert len(survives(file, source)) == 101


@given(FILES, FILES)
@settings(max_examples=150, deadline=None)
def test_no_two_files_together_make_the_checker_raise(one: str, other: str) -> None:
    sources = [Source("one", one), Source("other", other)]
    parsed = [(parse_file(source)[0], source) for source in sources]
    policies, found = check_files(parsed, PLUGINS)
    assert {finding.code for finding in found} <= CODES.keys()
    assert {finding.file for finding in found} <= {"one", "other"}
    for policy in policies:
        assert {part.name for let in policy.lets for part in walk(let.value) if isinstance(part, ir.LetRef)} <= {
            let.name for let in policy.lets
        }
