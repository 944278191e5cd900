"""What is said of a place: types, meanings, comments, pages."""

import pytest

from policyengine.server.language_server.hover import hover
from tests.server.language_server.readings import member, opened, training


def said(text: str) -> str:
    """What is shown at the cursor, '' for nothing."""
    project, reading, offset = opened(text)
    found = hover(reading, offset, project.findings_in(reading))
    return found.contents.value if found is not None else ""


HALF = 'policy "p" {\n  /// Half of it.\n  function half(a: int): int = a / 2\n  let b = ha¦lf(4)\n}\n'
SAID: dict[str, tuple[str, tuple[str, ...]]] = {
    "a field has its type and meaning": (
        training("node.free.memory -", "node.fr¦ee.memory -"),
        ("node.free", "allocatable less used; may be negative"),
    ),
    "the type of a field is what the checker says": (
        training('pod.labels[?"podGroup"]', 'pod.lab¦els[?"podGroup"]'),
        ("pod.labels: map(string, string)",),
    ),
    "so is that of a key of a map": (
        member('filter "f" when has(pod.labels.app) { require pod.labels.a¦pp == "x" }'),
        ("pod.labels.app: string",),
    ),
    "a param is shown with its bounds and its comment": (
        training(">= headroom", ">= head¦room"),
        ("param headroom: memory = 2Gi range [0Gi, 64Gi]", "What a node with accelerators keeps free"),
    ),
    "a let is shown with its type": (training("when gpus > 0", "when gp¦us > 0"), ("let gpus: int",)),
    "a let has a type where another member is broken": (
        'policy "p" {\n  let ¦a = pod.priority\n  let b = (\n}\n',
        ("let a: int",),
    ),
    "the variable of a macro has the type of the elements": (
        member("let a = node.pods.exists(q, ¦q.restarts > 1)"),
        ("q: clusterPod",),
    ),
    "a field in the body of a function has a type": (
        member("function f(a: pod): bool = node.pods.exists(q, q.rest¦arts > 1)"),
        ("restarts: int",),
    ),
    "a function of the language has its signatures": (
        training("100 * ratio(", "100 * rat¦io("),
        ("ratio(cpu, cpu): double",),
    ),
    "a function of the policy has its signature": (HALF, ("function half(a: int): int", "Half of it.")),
    "a plugin is shown with its arguments": (
        training("use NodeResourcesFit", "use Node¦ResourcesFit"),
        ("filters and scores, weight 1 by default", "`strategy`, one of `LeastAllocated`, `MostAllocated`"),
    ),
    "an argument of a plugin has its values": (training("{ strategy", "{ stra¦tegy"), ("one of `LeastAllocated`",)),
    "a keyword says what it begins": (training('filter "memory', 'fil¦ter "memory'), ("`filter",)),
    "a finding shows its page": (member("let a = no¦thing"), ("**PE1001**",)),
    "a rule is shown where a test names it": (
        training('by "memory-headroom"', 'by "memory-¦headroom"'),
        ('filter "memory-headroom"',),
    ),
}


@pytest.mark.parametrize(("text", "parts"), SAID.values(), ids=SAID)
def test_what_stands_at_the_cursor_is_explained(text: str, parts: tuple[str, ...]):
    shown = said(text)
    assert [part for part in parts if part not in shown] == []


@pytest.mark.parametrize("text", ["¦", "// comm¦ent\n", member("¦"), 'policy "p" {\n  let a = 1 +  ¦ 2\n}\n'])
def test_nothing_is_said_where_nothing_stands(text: str):
    assert "let a = 1 +" not in said(text)
