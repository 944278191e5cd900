"""No text makes lint raise, or take long, or much memory; and what it says of one is in order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language.check import check_files
from policyengine.language.diagnostics import CODES, Diagnostic, Severity, Source, in_order, render
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import LINT_CODES, lint
from policyengine.language.parse import parse_file
from tests.language.lint.findings import plugins
from tests.language.policies import damaged
from tests.language.typed import sources

FOLDER = Path(__file__).parent
CASES = [file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("PE*.md"))]


def opinions(text: str) -> list[Diagnostic]:
    source = Source("a.policy", text)
    file, _ = parse_file(source)
    policies, _ = check_files([(file, source)], plugins())
    found = lint(source, file, policies, plugins(), Settings())
    assert found == in_order(found)
    for finding in found:
        assert finding.code in LINT_CODES
        assert finding.code in CODES
        assert finding.severity is not Severity.ERROR
        assert "\n" not in finding.message
        assert 0 <= finding.span.start < finding.span.end <= len(text)
        for edit in finding.fix.edits if finding.fix else ():
            assert 0 <= edit.span.start <= edit.span.end <= len(text)
    assert render(found, source) or not found
    return found


@given(damaged())
@settings(max_examples=60)
def test_a_damaged_policy_gives_findings_only(text: str) -> None:
    opinions(text)


@given(st.sampled_from(CASES), st.integers(0, 2000), st.integers(0, 30), st.text(max_size=5))
@settings(max_examples=75)
def test_a_damaged_case_gives_findings_only(text: str, at: int, length: int, new: str) -> None:
    text = text.replace("```policy\n", 'policy "p" {\n').replace("```", "}")
    opinions(text[:at] + new + text[at + length :])


@given(sources("bool"), sources("bool"), sources("int"))
@settings(max_examples=75)
def test_random_conditions_and_scores_give_findings_only(first: str, second: str, score: str) -> None:
    requires = f"require {first} require {second} require !({first}) || {second}"
    opinions(f'policy "p" {{ filter "f" {{ {requires} }} score "s" weight 3 = clamp({score}, 0, 100) }}')


def wide(part: str, around: str = "{}") -> str:
    """A text near a limit: as many parts as the 30,000 words of a file, or its 1 MiB, have room for."""
    return f'policy "p" {{ {around.format(part)} }}'


LIMIT = 2.0
"""Seconds of CPU for the worst text within the limits; at most about 1.1 on an idle machine."""
LARGE = {
    "filters that all compare": "".join(
        f'filter "f{n}" {{ require node.podCount < {n} || node.zone != "z{n}" }}\n' for n in range(1500)
    ),
    "one filter of many requires": 'filter "f" {'
    + "".join(f"require node.podCount < {n} || pod.priority > {n}\n" for n in range(2500))
    + "}",
    "a condition of many alternatives": 'filter "f" { require '
    + " && ".join(f'(node.zone == "a{n}" || node.podCount < {n})' for n in range(2000))
    + "}",
    "lets in a chain": "let x0 = pod.priority > 3\n"
    + "".join(f"let x{n} = x{n - 1} && (x{n - 1} || pod.priority != {n})\n" for n in range(1, 1500))
    + 'filter "f" when x1499 { require x1498 }',
    "names alike": "".join(f"let aB{n} = {n}\n" for n in range(4000)),
    "scores": "".join(f'score "s{n}" weight {n + 1} = node.podCount > {n} ? 100 : {n % 50}\n' for n in range(1500)),
    "gangs": "".join(
        f'gang "g{n}" when pod.priority != {n} {{ key: pod.namespace min: 2 timeout: 60s }}\n' for n in range(900)
    ),
    "comments": "".join(f"// lint: allow PE3001 because {n}\n" for n in range(25_000)),
    "comments behind code": "".join(f"let a{n} = {n} // lint: allow PE3001 because {n}\n" for n in range(5_000)),
    "comments about what is found": "".join(
        f'filter "F{n}" {{ require node.ready }} // lint: allow PE3504 because {n}\n' for n in range(2_500)
    ),
    "a long comment": "// lint: allow " + "PE3001, " * 120_000,
    "keys": "queue { order by " + ", ".join(f"pod.priority % {n + 2}" for n in range(4000)) + " }",
    "patterns": 'filter "f" { require ' + " && ".join(f'node.name.matches("a{n}")' for n in range(2000)) + " }",
    "labels": 'filter "f" { require '
    + " && ".join(f'node.labels[?"topology.kubernetes.io/zon{n}"].orValue("") == "a"' for n in range(1200))
    + " }",
    "noise": "\x00\xff{[(" * 100_000,
}  # fmt: skip


def test_texts_near_a_limit_take_less_than_two_seconds_each_and_little_memory(tmp_path: Path) -> None:
    """CPU time without the start of the process, so that other work on the machine does not count. Memory is VmHWM:
    `ru_maxrss` still holds what the process had that started this one."""
    for name, part in LARGE.items():
        (tmp_path / f"{name}.policy").write_text(wide(part)[: 1 << 20], encoding="utf-8")
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from policyengine.commands.linting.files import linted\n"
        "from policyengine.commands.policy_files import texts_and_errors\n"
        "for path in sys.argv[1:]:\n"
        "    texts, errors = texts_and_errors([path])\n"
        "    before = time.process_time()\n"
        "    linted(texts)\n"
        "    print(time.process_time() - before)\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])\n"
    )
    files = [tmp_path / f"{name}.policy" for name in LARGE]
    done = subprocess.run([sys.executable, "-c", code, *files], check=True, capture_output=True, text=True)
    *seconds, kilobytes = map(float, done.stdout.split())
    taken = dict(zip(LARGE, seconds, strict=True))
    assert {name: spent for name, spent in taken.items() if spent >= LIMIT} == {}
    assert kilobytes < 200 * 1024
