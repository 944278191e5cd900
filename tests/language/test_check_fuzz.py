"""No tree and no text makes the checker raise, and what it lets through is whole."""

from functools import partial
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


def made(kind: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(partial(kind, span=AT), **fields)


def some(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(parts, max_size=2).map(tuple)


NAMES = made(syntax.NameText, text=st.sampled_from(["a", "b", "pod", "x_1", "NodeName", ""]))
TYPES = st.recursive(
    made(syntax.TypeRef, name=st.sampled_from(["int", "cpu", "string", "nothing"])),
    lambda inner: made(syntax.TypeRef, name=st.sampled_from(["list", "map", "optional", "int"]), args=some(inner)),
    max_leaves=3,
)
MAYBE = st.none() | EXPRESSIONS
PAIRS = st.none() | st.tuples(EXPRESSIONS, EXPRESSIONS)
TEMPLATES = made(syntax.Template, parts=some(st.text(max_size=3) | EXPRESSIONS))
REQUIRES = made(syntax.Require, condition=EXPRESSIONS, otherwise=st.none() | TEMPLATES, on_error=MAYBE)
NORMALIZE = made(syntax.Normalize, method=st.sampled_from(["max", "minmax"]))
MEMBERS = st.one_of(
    made(syntax.Let, name=NAMES, value=EXPRESSIONS),
    made(
        syntax.Param,
        name=NAMES,
        type=TYPES,
        default=EXPRESSIONS,
        range=PAIRS,
        values=st.none() | some(EXPRESSIONS),
    ),
    made(syntax.Filter, name=NAMES, when=MAYBE, requires=some(REQUIRES)),
    made(
        syntax.Score,
        name=NAMES,
        weight=EXPRESSIONS,
        when=MAYBE,
        normalize=st.none() | NORMALIZE,
        value=EXPRESSIONS,
        on_error=MAYBE,
    ),
    made(syntax.Gang, name=NAMES, when=MAYBE, key=MAYBE, min=MAYBE, timeout=MAYBE, waits=MAYBE),
    made(syntax.Permit, name=NAMES, when=MAYBE, delay=MAYBE, until=MAYBE, timeout=MAYBE),
    made(
        syntax.Queue,
        order=some(made(syntax.OrderKey, value=EXPRESSIONS)),
        fair=MAYBE,
        backoff=PAIRS,
        flush=MAYBE,
    ),
    made(syntax.Preempt, when=MAYBE, victims=MAYBE, order=st.just(()), max_victims=MAYBE),
    made(syntax.Share, value=EXPRESSIONS),
    made(syntax.Base, name=NAMES),
    made(syntax.Use, plugin=NAMES, weight=MAYBE),
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
@settings(max_examples=100, deadline=None)
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
    assert {finding.code for finding in survives(file, source)} <= {"PE1004", "PE1006", "PE1017"}


def test_a_file_of_mistakes_is_checked_in_good_time() -> None:
    text = 'policy "p" {' + "\n".join(f"let x{at} = y{at} + x{(at * 7) % 4000}" for at in range(4000)) + "}"
    source = Source("a.policy", text)
    file, wrong = parse_file(source)
    assert not wrong
    assert len(survives(file, source)) == 101


@given(FILES, FILES)
@settings(max_examples=70, deadline=None)
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
