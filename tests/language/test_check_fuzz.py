"""No text makes the checker raise, and what it lets through is whole."""

from hypothesis import given, settings

from policyengine.language import ir, syntax
from policyengine.language.check import check_files
from policyengine.language.diagnostics import CODES, Diagnostic, Severity, Source, has_errors
from policyengine.language.ir.ir_walk import expressions_in, walk
from policyengine.language.parse import parse_file
from policyengine.language.types import Kind
from tests.language.checking import PLUGINS
from tests.language.members import FILES
from tests.language.policies import damaged
from tests.language.typed import sources


def survives(file: syntax.File, source: Source) -> list[Diagnostic]:
    policies, found = check_files([(file, source)], PLUGINS)
    assert len(found) <= 101
    for finding in found:
        assert finding.code in CODES
        assert finding.severity is Severity.ERROR
        assert "\n" not in finding.message
        assert len(finding.message) < 500
    for policy in policies:
        for expr in expressions_in(policy):
            assert all(part.type.kind not in (Kind.ERROR, Kind.DYN) for part in walk(expr))
    assert has_errors(found) or len(policies) == len(file.policies)
    return found


@given(FILES)
@settings(max_examples=100)
def test_a_file_of_any_members_gives_findings_only(text: str) -> None:
    source = Source("a.policy", text)
    file, wrong = parse_file(source)
    if not wrong:
        survives(file, source)


@given(damaged())
@settings(max_examples=40)
def test_a_damaged_policy_gives_findings_only(text: str) -> None:
    source = Source("a.policy", text)
    file, wrong = parse_file(source)
    policies, _ = check_files([(file, source)], PLUGINS)
    assert not (wrong and policies and file.policies[0].broken)


@given(sources())
@settings(max_examples=150)
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
@settings(max_examples=70)
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
