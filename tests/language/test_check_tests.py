"""What the checker says of `test` members: names, fields, conditions."""

from __future__ import annotations

import pytest

from policyengine.language.diagnostics import Source
from policyengine.policy_compiler import checked

HEAD = """policy "p" {
  param n: int = 1 range [0, 3]
  let twice = n * 2
  score "pack" weight 1 = 3
  test "t" {
    given node "a" { allocatable: {cpu: 4} }
    given pod "s" on "a" {}
    given pod "p" {}
"""


def findings(step: str) -> list[tuple[str, str]]:
    _, found = checked(Source("x.policy", f"{HEAD}    {step}\n  }}\n}}"))
    return [(finding.code, finding.message) for finding in found]


GOOD = [
    'given pod "q" { tolerations: [{key: "k", operator: "Exists"}], owner: {kind: "Job", name: "j"} }',
    'given pod "q" { containers: [{image: "x", requests: {cpu: 1}}], volumes: [{name: "v", claim: "c"}] }',
    'given pod "q" { spec: {affinity: {}}, phase: "Succeeded", restarts: 2 }',
    'given pod "q" on "a" { startedAt: "2026-01-01T00:00:00Z", terminating: true }',
    'given node "b" { taints: [{key: "k", effect: "NoSchedule"}], images: ["app:1"], conditions: [{type: "X"}] }',
    'expect that placed("p") || feasible("p", "a")',
    'expect that score("pack", "p", "a") >= n && total("p", "a") > 0',
    'expect that score("NodeResourcesFit", "p", "a") == 100',
    'expect that annotation("p", "example.com/zone").orValue("") == "" || logged("s", "any {text}")',
    'expect that [1, 2].exists(x, total("p", "a") == x)',
]


@pytest.mark.parametrize("step", GOOD)
def test_what_may_be_given_and_asked_is_taken(step: str) -> None:
    assert findings(step) == []


BAD = [
    ('given pod "q" { lables: {} }', "PE2013", "a given pod has no field `lables`; did you mean `labels`?"),
    ('given node "b" { cpu: 4 }', "PE2013", "a given node has no field `cpu`; amounts stand in `allocatable: {…}`"),
    ('given pod "q" { memory: 1Gi }', "PE2013", "a given pod has no field `memory`; amounts stand in `requests: {…}`"),
    ('given pod "q" { qos: 1 }', "PE2013", "`qos` is not given: it follows from requests and limits"),
    ('given node "b" { free: {cpu: 1} }', "PE2013",
     "`free` is not given: it follows from `allocatable` and the pods on the node"),
    ('given pod "q" { requests: {cpu: "x"} }', "PE2013",
     "`requests` is a map of amounts, such as `{cpu: 4, memory: 8Gi}`; `cpu`: `x` is not a quantity; write a number "
     "such as 100m or 2Gi"),
    ('given node "b" { allocatable: {memory: "8GB"} }', "PE2013",
     "`allocatable` is a map of amounts, such as `{cpu: 4, memory: 8Gi}`; `memory`: `8GB` is not a quantity; "
     "write `8G`"),
    ('given node "b" { taints: [{kye: "k"}] }', "PE2013",
     "`taints` is a list of taints, and one of them is a taint, which has `key`, `value`, `effect`, and no `kye`"),
    ('given pod "q" { startedAt: "noon" }', "PE2013", "`startedAt` is a time, such as `2026-01-05T18:30:00Z`"),
    ('given pod "q" { priority: true }', "PE2013", "`priority` is an int"),
    ('given pod "q" { owner: {kind: 1} }', "PE2013", "`owner` is an owner, whose `kind` is a string"),
    ('given pod "q" { images: ["x"], containers: [{image: "y"}] }', "PE2013",
     "`images` is said of each of the `containers`, or of the pod, not of both"),
    ('expect "p" before "p"', "PE2013", "no pod comes before itself"),
    ('expect "s" waits', "PE2013", "`s` is given on a node: it is never queued"),
    ('expect "s" rejected', "PE2013", "`s` is given on a node: it is never queued"),
    ('expect that placed("q")', "PE2013", "no pod was given as `q`; did you mean `p`?"),
    ('expect that placed("p", "b")', "PE2013", "no node was given as `b`; did you mean `a`?"),
    ('expect that score("pak", "p", "a") > 1', "PE2013", "no rule or plugin is called `pak`; did you mean `pack`?"),
    ('expect that total("p", "a")', "PE2013", "`expect that` takes a bool, this is int"),
    ('expect that placed(p)', "PE1004", '`placed` takes names in quotes: `placed("p", "a")`'),
    ('expect that total("p")', "PE1004", '`total` takes names in quotes: `total("p", "a")`'),
    ("expect that n > 0", "PE2013",
     'the condition asks nothing of the run; ask `placed("p", "a")`, `feasible("p", "a")`, '
     '`score("rule", "p", "a")`, `total("p", "a")`, `reason("p", "a")`, `annotation("p", "key")`, '
     '`logged("p", "text")`'),
    ('expect that placed("p") && pod.priority > 0', "PE1011",
     '`expect that` asks about pods by name, as in `placed("p")`; it reads no `pod.priority`'),
    ('expect that total("p", "a") > twice', "PE1011",
     '`expect that` asks about pods by name, as in `placed("p")`; it reads no `twice`'),
    ('expect that annotation("q", "k").hasValue()', "PE2013", "no pod was given as `q`; did you mean `p`?"),
    ('expect that annotation("p")', "PE1004", '`annotation` takes names in quotes: `annotation("p", "key")`'),
    ('expect that logged("p", 1)', "PE1004", '`logged` takes names in quotes: `logged("p", "text")`'),
    ('expect that logged("p", "a", "b")', "PE1004", '`logged` takes names in quotes: `logged("p", "text")`'),
    ('expect that annotation("p", "k")', "PE2013", "`expect that` takes a bool, this is optional(string)"),
    ('expect that annotation("p", "k") == "z"', "PE1004",
     "`==` does not take optional(string) and string; an optional may be empty: add `.orValue(…)`"),
    ('expect that placed("p") + 1', "PE1004", "`+` does not take bool and int"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "code", "message"), BAD)
def test_what_is_wrong_is_said(step: str, code: str, message: str) -> None:
    assert findings(step) == [(code, message)]


def test_the_functions_mean_nothing_outside_tests() -> None:
    _, found = checked(Source("x.policy", 'policy "p" { filter "f" { require placed("p") } }'))
    assert [finding.code for finding in found] == ["PE1003"]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ('given pod "q" { labels: {rank: 1} } expect "q" on "a"', 'a map of strings, and `rank` is none: write `"1"`'),
        ('given pod "q" { labels: {x: true} } expect "q" on "a"', 'a map of strings, and `x` is none: write `"true"`'),
        ('given pod "q" { foo: 1 } expect "q" on "a"', "a given pod has no field `foo`"),
        (
            'given node "b" { taints: [{key: "x", effect: "NoSchedul"}] } expect "p" on "b"',
            "whose `effect` is `NoSchedule`, `PreferNoSchedule` or `NoExecute`, not `NoSchedul`; "
            "did you mean `NoSchedule`?",
        ),
        (
            'given pod "q" { tolerations: [{key: "x", operator: "exists"}] } expect "q" on "a"',
            "not `exists`; did you mean `Exists`?",
        ),
        ('given pod "q" on "b" {} expect "q" on "a"', "no node was given as `b`"),
        ('given node "b" { foo: 1 } expect "p" on "b"', "a given node has no field `foo`"),
    ],
)
def test_what_was_given_wrongly_was_given_and_is_told_once(step: str, message: str) -> None:
    [(code, told)] = findings(step)
    assert code == "PE2013" and message in told
