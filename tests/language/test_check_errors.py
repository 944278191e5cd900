"""Broken source -> code, place, message, fix: what the checker says, and that it says it once."""

import re
from pathlib import Path

import pytest

from policyengine.language import check
from policyengine.language.checking.findings import CHECK_CODES
from policyengine.language.diagnostics import Diagnostic, Source
from tests.language.checking import checked, findings, wrong

WRONG = [
    # names
    ("podd.name", "PE1001", "nothing is called `podd`; did you mean `pod`?"),
    ("pod.nmae", "PE1002", "`pod` has no field `nmae`; did you mean `name`?"),
    ("pod.team", "PE1002", 'a label is `.labels[?"team"]`'),
    ("pod.requests.gpu", "PE1002", "`resources` has no field `gpu`"),
    ("pod.name.x", "PE1002", "a string has no fields"),
    ('lowerascii("A")', "PE1003", "did you mean `lowerAscii`?"),
    ('size2("A")', "PE1003", "no function is called `size2`"),
    ('lowerAscii("A")', "PE1003", "`lowerAscii` is written `x.lowerAscii(…)`"),
    ("4.abs()", "PE1003", "`abs` is written `abs(…)`"),
    ("pod.labels.map(pod, 1)", "PE1009", "`pod` is taken"),
    # types do not mix
    ("1 + 1.0", "PE1004", "`+` does not take int and double; write `double(…)` around the int"),
    ("pod.priority + 1.0", "PE1004", "write `double(…)`"),
    ('1 == "1"', "PE1004", "`==` does not take int and string"),
    ("pod.priority + ratio(1, 2)", "PE1004", "write `double(…)`"),
    ("node.free.cpu + node.free.memory", "PE1004", "both sides need one dimension"),
    ("node.free.cpu > pod.priority", "PE1004", "an int has no dimension"),
    ("node.free.cpu * node.free.cpu", "PE1004", "a quantity is scaled by a number"),
    ("node.free.cpu > 2 + 2", "PE1004", "an int has no dimension"),
    ('optional.of(1).orValue("a")', "PE1004", "it takes optional(int) and int"),
    ('["a"].min()', "PE1004", "it takes list(int); list(double); list(cpu); list(memory); …"),
    ('min(1, "a")', "PE1004", "it takes int and int"),
    ('{1: "a"}[1]', "PE1007", "guard it with `1 in …`"),
    ('{true: "a"}[true]', "PE1007", "guard it with `true in …`"),
    ('pod.labels[?"x"] == "a"', "PE1004", "an optional may be empty: add `.orValue(…)`"),
    ("pod.requests == pod.requests", "PE1004", "compare its fields"),
    ("pod.priority > 0 ? 1 : 'a'", "PE1004", "the branches of `?:` differ: int and string"),
    ("[1, 'a']", "PE1004", "the items of a list have one type: int, and this is string"),
    ('{"a": 1, "b": "c"}', "PE1004", "the values of a map have one type"),
    ("{1.5: 1}", "PE1004", "the keys of a map are all int, string or bool"),
    ('ratio(1, "a")', "PE1004", "it takes int and int"),
    ("pod.priority && true", "PE1005", "`&&` takes bools, this is int"),
    ("pod.priority ? 1 : 2", "PE1005", "the condition of `?:` is a bool"),
    ("!pod.priority", "PE1004", "`!` does not take int"),
    ("pod.priority.exists(x, true)", "PE1005", "`exists` runs over a list or a map, not over int"),
    ("pod.images.exists(x, x)", "PE1005", "`exists` tests a bool, this is string"),
    ("pod.name.optMap(x, x)", "PE1005", "`optMap` is for optionals"),
    ("pod.name[0]", "PE1005", "a string takes no `[…]`"),
    ("pod.labels[?1]", "PE1005", "the key of a map(string, string) is string, not int"),
    # literals
    ("now - pod.createdAt > 5m", "PE1006", "`5m` is 5 milli, not minutes; write `5min`"),
    ("now - pod.createdAt > 60", "PE1006", "a duration needs a unit: `60s`"),
    ("now - pod.createdAt > 2Gi", "PE1006", "`2Gi` is not a duration"),
    ("node.free.memory > 500m", "PE1006", "`500m` is 500 milli: too little for memory"),
    ("node.free.cpu > 2Gi", "PE1006", "`2Gi` is an amount of memory, not of cpu"),
    ('pod.qos == "Guarantied"', "PE1006", "`Guarantied` is no quality of service"),
    ("1G", "PE1015", "`1G` may be bytes or cores"),
    ("[]", "PE1015", "nothing here says what `[]` holds"),
    ("optional.none()", "PE1015", "nothing here says what the optional holds"),
    ("1 / 0", "PE1006", "division by zero"),
    ("9223372036854775807 + 1", "PE1006", "integer overflow"),
    ("9000000Ti", "PE1006", "too large for memory"),
    ('int("x")', "PE1006", "`x` is not an int"),
    ('timestamp("yesterday")', "PE1006", "`yesterday` is not a time"),
    ('pod.name.matches("(")', "PE1006", "is not a pattern of RE2"),
    ("pod.name.matches(pod.name)", "PE1012", "the pattern of `matches` is a literal"),
    ('now.getHours("Mars/Base")', "PE1006", "`Mars/Base` is no time zone"),
    ("random(pod.name)", "PE1012", "a stream of `random` is a literal"),
    ('toQuantity("1", bytes)', "PE1004", "`toQuantity` takes a string and a dimension"),
    # what may be absent
    ('pod.labels["x"]', "PE1007", 'guard it with `"x" in pod.labels`'),
    ("pod.labels.x", "PE1007", 'guard it with `"x" in pod.labels`'),
    ('"y" in pod.labels && pod.labels["x"] == "a"', "PE1007", "a key that may be absent"),
    ('"x" in pod.labels || pod.labels["x"] == "a"', "PE1007", "a key that may be absent"),
    ('pod.labels["x"] == "a" && "x" in pod.labels', "PE1007", "a key that may be absent"),
    ('"x" in node.labels && pod.labels["x"] == "a"', "PE1007", "a key that may be absent"),
    ("pod.limits.cpu", "PE1007", "guard it with `has(pod.limits.cpu)`"),
    ("pod.images[0]", "PE1007", "an item that may not be there"),
    ("pod.images.size() > 0 && pod.images[1] == 'a'", "PE1007", "an item that may not be there"),
    ('node.free["nvidia.com/gpu"]', "PE1007", "write `[?…]`"),
    ('node.free[?"cpu"]', "PE1006", "`cpu` has a field of its own"),
    ("pod.?name", "PE1013", "`name` is always there; write `.name`"),
    ("has(pod.name)", "PE1013", "`pod.name` is always there"),
    ("has(pod)", "PE1016", "`has` takes a field"),
    ("pod.images.exists(1, true)", "PE1016", "`exists` takes a new name and an expression"),
    # what costs nodes times nodes
    ("nodes.filter(n, n.podCount > node.podCount).size()", "PE1017", "all those nodes once for every node"),
    ("pods.exists(p, p.namespace == node.name)", "PE1017", "write `node.pods`, or `node.domain("),
    ("node.podCount in nodes.map(n, n.podCount)", "PE1017", "all those nodes once for every node"),
    ("nodes.map(n, pods.filter(p, p.node == n.name).size()).sum()", "PE1017", "all those pods once for every node"),
    ('pods.exists(p, node.domain("z").pods.exists(q, q.name == p.name))', "PE1017", "for each `p` this goes through"),
    # what policies leave out
    ("null", "PE1008", "a policy has no null"),
    ('b"x"', "PE1008", "a policy has no bytes"),
    ("7u", "PE1008", "a policy has no uint"),
    ('pod.labels[?"x"].value()', "PE1008", "a policy has no `.value()`"),
]


def one(found: list[Diagnostic]) -> Diagnostic:
    assert len(found) == 1, [finding.message for finding in found]
    return found[0]


@pytest.mark.parametrize(("source", "code", "fragment"), WRONG)
def test_a_wrong_expression_has_one_finding(source: str, code: str, fragment: str) -> None:
    finding = one(wrong(source))
    assert (finding.code, fragment in finding.message) == (code, True), finding.message


FIXED = [
    ("now - pod.createdAt > 5m", "now - pod.createdAt > 5min"),
    ("now - pod.createdAt > 60", "now - pod.createdAt > 60s"),
    ("pod.priority + 1.0 > 2.0", "double(pod.priority) + 1.0 > 2.0"),
    ("pod.nmae == 'a'", "pod.name == 'a'"),
    ("podd.name == 'a'", "pod.name == 'a'"),
    ("pod.?name == 'a'", "pod.name == 'a'"),
    ("(true ? pod.priority : 0.5) > 1.0", "(true ? double(pod.priority) : 0.5) > 1.0"),
    ('pod.qos == "Guarantied"', 'pod.qos == "Guaranteed"'),
    ('node.free[?"cpu"] > 1', "node.free.cpu > 1"),
    ("node.free.memory > 500m", "node.free.memory > 500Mi"),
    ('pod.limits[?"cpu"].orValue(1)', "pod.limits.?cpu.orValue(1)"),
]


@pytest.mark.parametrize(("source", "better"), FIXED)
def test_a_fix_makes_the_expression_right(source: str, better: str) -> None:
    text = f'policy "p" {{ let it = {source} }}'
    fix = one(checked(text)[1]).fix
    assert fix is not None
    for edit in sorted(fix.edits, key=lambda edit: -edit.span.start):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert text == f'policy "p" {{ let it = {better} }}'
    assert not checked(text)[1]


PLACED = [
    ("let a = pod.name\nlet b = pod.nmae", "PE1002", (2, 13)),
    ("let a = 1\nlet a = 2", "PE1009", (2, 5)),
    ("let pod = 1", "PE1009", (1, 5)),
    ("param a: int = 1\nlet a = 2", "PE1009", (2, 5)),
    ("let a = b\nlet b = a", "PE1014", (1, 5)),
    ("let a = a + 1", "PE1014", (1, 5)),
    ("param a: memory = 5Gi range [0Gi, 4Gi]", "PE2007", (1, 19)),
    ('param a: string = "c" values ["a", "b"]', "PE2007", (1, 19)),
    ("param a: int = 1 range [2, 0]", "PE2007", (1, 16)),
    ("param a: intt = 1", "PE2012", (1, 10)),
    ("param a: int = 1.5", "PE1005", (1, 16)),
    ("param a: int = pod.priority", "PE1011", (1, 16)),
    ("let b = 1\nparam a: int = b", "PE1011", (2, 16)),
    ('scheduler "a"\nscheduler "b"', "PE2001", (2, 1)),
    ("base kubernets", "PE2012", (1, 6)),
    ("share 0", "PE2005", (1, 7)),
    ("disable NodeNam", "PE2003", (1, 9)),
    ("use NodeName weight 2 {}", "PE2005", (1, 21)),
    ('use NodeResourcesFit { strategy: "Most" }', "PE2004", (1, 34)),
    ("use NodeResourcesFit { strategi: 1 }", "PE2004", (1, 22)),
    ('use NodeResourcesFit { strategy: "LeastAllocated" strategy: "MostAllocated" }', "PE2004", (1, 51)),
    ("use NodeResourcesFit { ignored: pod.name }", "PE2004", (1, 33)),
    ("use ImageLocality {}\ndisable ImageLocality", "PE2002", (2, 9)),
    ('filter "NodeName" { require true }', "PE2002", (1, 8)),
    ('filter "f" { require true }\nscore "f" weight 1 = 1\nfilter "f" { require true }', "PE2002", (3, 8)),
    ('score "s" weight 1 = 1\nscore "s" tier = 1', "PE2002", (2, 7)),
    ('quota "q" when true { limit: {cpu: 1} }\nquota "q" when true { limit: {cpu: 1} }', "PE2002", (2, 7)),
    ('filter "f" { require pod.priority }', "PE1005", (1, 22)),
    ('filter "f" when node.ready { require true }', "PE1011", (1, 17)),
    ('filter "f" { require true else "{pod.requests}" }', "PE1005", (1, 34)),
    ('filter "f" { require true else "{pod.nmae}" }', "PE1002", (1, 38)),
    ('score "s" weight 0 = 1', "PE2005", (1, 18)),
    ('score "s" weight pod.priority = 1', "PE2005", (1, 18)),
    ('score "s" weight 1 = node.free.cpu', "PE1005", (1, 22)),
    ('score "s" weight 1 = pod.priority', "PE2006", (1, 22)),
    ('score "s" weight 1 = node.free.cpu / pod.requests.cpu', "PE2006", (1, 22)),
    ('gang "g" { key: pod.namespace min: 1 }', "PE2008", (1, 6)),
    ('gang "g" { key: node.name min: 1 timeout: 1s }', "PE1011", (1, 17)),
    ('gang "g" { key: pod.name min: 0 timeout: 1s }', "PE2009", (1, 31)),
    ('gang "g" { key: pod.name min: 1 timeout: 5m }', "PE1006", (1, 42)),
    ("queue { order by node.free.cpu }", "PE1011", (1, 18)),
    ("queue { order by now }", "PE1011", (1, 18)),
    ("queue { order by pod.labels }", "PE1005", (1, 18)),
    ("queue { backoff 10s .. 1s }", "PE2009", (1, 17)),
    ("queue { backoff 1 .. 10s }", "PE1006", (1, 17)),
    ("queue { fair by pod.priority }", "PE1005", (1, 17)),
    ("queue { fair by node.name }", "PE1011", (1, 17)),
    ('queue { fair by pod.namespace weight {"a": 0} }', "PE2005", (1, 44)),
    ('queue { fair by pod.namespace weight {"a": 1, "a": 2} }', "PE2002", (1, 47)),
    ("queue { fair by pod.namespace weight {a: 1} }", "PE1001", (1, 39)),
    ('gang "g" { key: pod.name min: 1 timeout: 1s waits: 0s }', "PE2009", (1, 52)),
    ('gang "g" { key: pod.name min: 1 timeout: 1s waits: node.name }', "PE1005", (1, 52)),
    ("".join(f'score "{name}" tier = 1\n' for name in "abcde"), "PE2005", (5, 1)),
    ('score "s" tier = node.podCount', "PE2006", (1, 18)),
    # quotas
    ('quota "q" when true { borrow: true }', "PE2008", (1, 7)),
    ('quota "q" when true { limit: {} }', "PE2008", (1, 30)),
    ('quota "q" when true { limit: {cpus: 1} }', "PE2012", (1, 31)),
    ('quota "q" when true { limit: {cpu: 2Gi} }', "PE1006", (1, 36)),
    ('quota "q" when true { limit: {cpu: -1} }', "PE2016", (1, 36)),
    ('quota "q" when true { limit: {cpu: 1, "cpu": 2} }', "PE2002", (1, 39)),
    ('quota "q" when true { limit: {cpu: cluster.podCount * 1000m} }', "PE1011", (1, 36)),
    ('quota "q" when true { limit: {cpu: pod.attempts * 1000m} }', "PE1011", (1, 36)),
    ('quota "q" when true { limit: {cpu: pod.name} }', "PE1005", (1, 36)),
    ('quota "q" when true { limit: {cpu: toQuantity(pod.name, memory)} }', "PE1005", (1, 36)),
    ('quota "q" by pod.priority { limit: {cpu: 1} }', "PE1005", (1, 14)),
    ('quota "q" by pod.labels[?"x"].optMap(x, size(x)) { limit: {cpu: 1} }', "PE1005", (1, 14)),
    ('quota "q" by string(pod.attempts) { limit: {cpu: 1} }', "PE1011", (1, 21)),
    ('quota "q" by string(cluster.podCount) { limit: {cpu: 1} }', "PE1011", (1, 21)),
    ('quota "q" by pod.labels["x"] { limit: {cpu: 1} }', "PE1007", (1, 14)),
    ('quota "q" when true { guarantee: {memory: 2Gi} limit: {memory: 1Gi} }', "PE2016", (1, 43)),
    ('quota "q" when true { limit: {cpu: 1} borrow: node.ready }', "PE1011", (1, 47)),
    ('quota "q" when pod.attempts > 1 { limit: {cpu: 1} }', "PE1011", (1, 16)),
    ('quota "q" when now > pod.createdAt { limit: {cpu: 1} }', "PE1011", (1, 16)),
    ('let late = cluster.podCount > 1\nquota "q" when late { limit: {cpu: 1} }', "PE1011", (2, 16)),
    # what would do nothing, or is no value
    ('filter "f" { }', "PE2010", (1, 8)),
    ('filter "f" { require nodes.map(n, n.name) == ["a"] }', "PE1018", (1, 22)),
    # permits
    ('permit "w" { timeout: 1min }', "PE2008", (1, 8)),
    ('permit "w" { delay: 1s until: true }', "PE2008", (1, 8)),
    ('permit "w" { delay: 0s }', "PE2009", (1, 21)),
    ('permit "w" { delay: 1min timeout: 1min }', "PE2009", (1, 35)),
    ('permit "w" { until: pod.priority }', "PE1005", (1, 21)),
    # preemption
    ("preempt { }", "PE2008", (1, 1)),
    ("preempt { maxVictims: 1 }\npreempt { maxVictims: 1 }", "PE2001", (2, 1)),
    ("preempt when node.ready { maxVictims: 1 }", "PE1011", (1, 14)),
    ("preempt when victim.priority > 1 { maxVictims: 1 }", "PE1011", (1, 14)),
    ("preempt { victims: node.ready }", "PE1011", (1, 20)),
    ("preempt { victims: victim.priority }", "PE1005", (1, 20)),
    ("preempt { victims: victim.prioritty > 1 }", "PE1002", (1, 27)),
    ("preempt { order by victim.labels }", "PE1005", (1, 20)),
    ("preempt { order by node.free.cpu }", "PE1011", (1, 20)),
    ("preempt { maxVictims: 0 }", "PE2016", (1, 23)),
    ("param n: int = 2 range [0, 3]\npreempt { maxVictims: n }", "PE2016", (2, 23)),
    ("preempt { maxVictims: pod.priority }", "PE1005", (1, 23)),
    ("let v = victim.priority", "PE1011", (1, 9)),
    # texts
    ('on filter log "x"', "PE2012", (1, 4)),
    ('on preFilter log "{node.name}"', "PE1011", (1, 20)),
    ('on preFilter when node.ready log "x"', "PE1011", (1, 19)),
    ('on postBind log "{pod}"', "PE1005", (1, 19)),
    ("bind { annotations: {'a b': 'b'} }", "PE2012", (1, 22)),
    ("bind { annotations: {'UPPER/b': 'b'} }", "PE2012", (1, 22)),
    ("bind { annotations: {a: 'b', 'a': 'c'} }", "PE2002", (1, 30)),
    ("bind { annotations: {a: '{pod.nmae}'} }", "PE1002", (1, 31)),
    ("bind { annotations: {a: 'b'} }\nbind { annotations: {c: 'd'} }", "PE2001", (2, 1)),
    ("share 1\nshare 2", "PE2001", (2, 1)),
    ("base none\nbase none", "PE2001", (2, 1)),
    ("queue { }\nqueue { }", "PE2001", (2, 1)),
    # functions
    ("function f(a: int): string = a", "PE1005", (1, 30)),
    ("function f(a: intt): int = 1", "PE2012", (1, 15)),
    ("function f(a: int, a: int): int = a", "PE1009", (1, 20)),
    ("function f(pod: int): int = pod", "PE1009", (1, 12)),
    ("function f(a: int): int = a + b", "PE1001", (1, 31)),
    ("function f(a: int): int = f(a)", "PE1014", (1, 10)),
    ("function f(a: int): int = g(a)\nfunction g(a: int): int = f(a)", "PE1014", (1, 10)),
    ("function f(a: int): int = a\nfunction f(a: int): int = a", "PE1009", (2, 10)),
    ("function clamp(a: int): int = a", "PE1009", (1, 10)),
    ("function f(a: int): int = a\nlet f = 1", "PE1009", (2, 5)),
    ("function f(a: int): int = a\nlet b = f", "PE1003", (2, 9)),
    ("function f(a: int): int = a\nlet b = f(1, 2)", "PE1004", (2, 9)),
    ('function f(a: int): int = a\nlet b = f("x")', "PE1004", (2, 11)),
    ("function first(a: int): int = a\nlet b = frist(1)", "PE1003", (2, 9)),
    ("let a = 1\nlet b = a(1)", "PE1003", (2, 9)),
    ("function f(a: int): int = 10 / a\nlet b = f(0)", "PE1006", (2, 9)),
    ('test "t" { given node "a" expect "p" on "a" }', "PE2013", (1, 34)),
    ('test "t" { given pod "p" { lables: {} } }', "PE2013", (1, 28)),
    ('test "t" { given node "n" { allocatable: {cpu: 1, cpu: 2} } }', "PE2013", (1, 51)),
    ('test "t" { given node "n" { ready: true, ready: false } }', "PE2013", (1, 42)),
    ('test "t" { given node "n" { allocatable: {cpu: "x"} } }', "PE2013", (1, 42)),
    ('test "t" { given pod "p" expect "p" rejected by "nobody" }', "PE2013", (1, 49)),
]


@pytest.mark.parametrize(("members", "code", "place"), PLACED)
def test_a_wrong_member_is_reported_where_it_is_wrong(members: str, code: str, place: tuple[int, int]) -> None:
    text = f'policy "p" {{\n{members}\n}}'
    found = {finding.code: finding for finding in checked(text)[1]}
    assert code in found, {finding.code: finding.message for finding in found.values()}
    line, column = Source("p.policy", text).line_column(found[code].span.start)
    assert (line - 1, column) == place, found[code].message


def test_of_more_than_a_hundred_mistakes_the_rest_is_not_shown() -> None:
    found = findings("\n".join(f"let a{number} = pod.nmae" for number in range(150)))
    assert len(found) == 101
    assert (found[-1].code, found[-1].message) == ("PE2015", "more than 100 mistakes: the rest is not shown")


def test_what_follows_from_a_mistake_is_not_reported_again() -> None:
    found = findings("""
        let a = pod.nmae
        let b = a + 1
        filter "f" when b > 0 { require a == "x" else "{a} {b}" }
    """)
    assert [finding.code for finding in found] == ["PE1002"]


def test_a_broken_policy_does_not_hide_the_other() -> None:
    policies, found, _ = checked('policy "a" { let x = y } policy "b" { scheduler "b" }')
    assert [policy.name for policy in policies] == ["b"]
    assert [finding.code for finding in found] == ["PE1001"]


def test_two_policies_of_a_file_serve_two_scheduler_names() -> None:
    _, found, _ = checked('policy "a" { } policy "b" { }')
    assert [finding.code for finding in found] == ["PE2014"]


def test_every_code_that_is_given_has_a_page_and_no_other_has_one() -> None:
    place = Path(check.__file__)
    texts = [file.read_text(encoding="utf-8") for file in (place, *(place.parent / "checking").glob("*.py"))]
    assert {code for text in texts for code in re.findall(r'"(PE\d{4})"', text)} == CHECK_CODES.keys()


def test_a_remainder_of_a_quantity_gets_no_hint_about_scaling() -> None:
    assert [one.message for one in wrong("node.free.cpu % 2 == 0")] == ["`%` does not take cpu and int"]


def test_what_is_not_among_the_arguments_is_not_shown_as_a_way_out() -> None:
    [one] = wrong('min("a", 1)')
    assert one.message.endswith("it takes int and int; double and double; cpu and cpu; memory and memory; …")
