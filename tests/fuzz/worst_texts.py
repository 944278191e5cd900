"""The deepest and longest texts: expressions as deep as they may be in every place, every construct in a long line.

    python -m tests.fuzz.worst_texts [SECONDS]

Whatever a text says, compiling it ends soon, with findings or a profile: no exception, and none hidden by the last
resort of `kube.policies.compiling`. What compiles decides about a pod, is formatted and explained.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")
Texts = Mapping[str, str]
"""The keys of a ConfigMap."""

SECONDS = 60
LONGEST = 4.0
"""Seconds of CPU in which one file is compiled, linted and tested, and in which each other thing is done with it: twice
what it takes on a machine without other work."""
MEMORY = 200
"""MiB that all of it may take."""

# --- expressions -----------------------------------------------------------------------------------------

STEPS = (
    "({} + 1)",
    "(1 + {})",
    "{} * 2",
    "-({})",
    "min({}, 1)",
    "max(1, {})",
    "(1 > 0 ? {} : 1)",
    "({} > 1 ? 1 : 2)",
    "(!({} > 1 || 1 > 2) ? 1 : 2)",
    "(1 > 2 && {} > 1 ? 1 : 2)",
    "[{}, 1].sum()",
    "[1].map({v}, {}).max().orValue(1)",
    "[1, 2].filter({v}, {v} > {}).size()",
    "([1].all({v}, {} > {v}) ? 1 : 2)",
    '{{"a": {}}}[?"a"].orValue(1)',
    "optional.of({}).orValue(1)",
    "optional.of(1).optMap({v}, {}).orValue(1)",
    "int(double({}))",
    "int(string({}))",
    "g({})",
    "g(g({}))",
)
"""An int of an int. `v` is a variable of its own each time; `g` a function of the policy."""
LEAVES = ("1", "pod.priority", "pod.labels.size()", "node.podCount", "low", "node.pods.map(p, p.priority).sum()")
PLACES = (
    'filter "f" {{ require {} > 0 }}',
    'filter "f" when {} > 0 {{ require node.ready }}',
    'filter "f" {{ require true else "{{{}}}" }}',
    'filter "f" {{ require node.pods.all(q, q.priority > {}) }}',
    'filter "f" {{ require pods.filter(q, q.priority > {}).size() > 0 }}',
    'score "s" weight 1 normalize minmax = {}',
    'score "s" weight 1 = {} on error {}',
    "queue {{ order by {} }}",
    "queue {{ fair by string({}) }}",
    'gang "g" {{ key: string({}) min: 1 timeout: 1min }}',
    'quota "q" when {} > 0 {{ limit: {{cpu: 4}} }}',
    'permit "w" when {} > 0 {{ delay: 1s }}',
    "preempt {{ order by {} }}",
    'on reserve log "{{{}}}"',
    'bind {{ annotations: {{"a/b": "{{{}}}"}} }}',
    "let x = {}",
    "function h(a: int): int = {}",
    "param x: int = {}",
    'test "t" {{ given pod "a" expect that {} > 0 }}',
)
IN_TEXT = ('filter "f" {{ require true', "on", "bind")
"""Places inside a string."""


def deep(chance: random.Random, leaf: str, levels: int) -> str:
    """An expression of so many steps around a leaf."""
    kinds = STEPS if chance.random() < 0.5 else (chance.choice(STEPS),)
    expr = leaf
    for level in range(levels):
        expr = chance.choice(kinds).format(expr, v=f"v{level}")
    return expr


def in_its_place(chance: random.Random) -> Texts:
    """An expression in some place: as deep as it may be there, or far deeper."""
    leaf, place, seed = chance.choice(LEAVES), chance.choice(PLACES), chance.random()

    def text(levels: int) -> str:
        expr = deep(random.Random(seed), leaf, levels)
        if place.startswith(IN_TEXT):
            expr = expr.replace('"', "'")
        return policy(f"let low = pod.attempts - 1 function g(y: int): int = y + low {place.format(expr, expr)}")

    if chance.random() < 0.1:
        return {"p.policy": text(chance.choice((90, 400)))}
    return {"p.policy": text(next(levels for levels in range(64, -1, -1) if _is_within(text(levels))))}


def _is_within(text: str) -> bool:
    """Whether a text is as deep as it may be, or less."""
    from policyengine.language.diagnostics import Source
    from policyengine.language.parse import parse_file

    return not any(finding.code == "PE0401" for finding in parse_file(Source("p.policy", text))[1])


def policy(members: str) -> str:
    """A policy, and a test that has it decide."""
    return f'policy "p" {{ {members} test "decides" {{ given node "n" given pod "p" on "n" given pod "q" }} }}'


# --- long lines ------------------------------------------------------------------------------------------

LETS = (10, 2500)
"""How many lets name each other in a line."""
LINES: Mapping[str, tuple[str, str, str]] = {
    "ints of a node": ("node.podCount", "{} + 1", "{} > 0"),
    "ints of a pod": ("pod.priority", "{} + 1", "{} > 0"),
    "choices": ("node.podCount", "{0} > 3 ? {0} + 1 : {0}", "{} > 0"),
    "both sides": ("pod.priority", "{0} + {0}", "{} > 0"),
    "conditions": ("node.ready", "{} && node.podCount > 3", "{}"),
    "negations": ("node.ready", "!{}", "{}"),
    "guards": ('"a" in node.labels', '{0} && node.labels["a"] != "b"', "{}"),
    "lists": ("node.pods", "{}.filter(v, v.priority > 0)", "{}.size() > 0"),
    "lists of all pods": ("pods", "{}.filter(v, v.priority > 0)", "{}.size() > 0"),
    "aggregates": ("node.podCount", "node.pods.map(v, v.priority + {}).sum()", "{} > 0"),
    "optionals": ('node.labels[?"a"]', '{}.optMap(v, v + "x")', "{}.hasValue()"),
    "domains": ("node.podCount", '{} + node.domain("zone").pods.size()', "{} > 0"),
    "maps": ("pod.labels", '{0}.size() > 3 ? {0} : pod.labels', "{}.size() > 0"),
    "texts": ("pod.name", '{} + "x"', '{} != ""'),
}  # fmt: skip
"""The value of the first let, of each further one by the one before, and the condition on the last."""


def lets(first: str, step: str, last: str, count: int) -> Texts:
    """Lets of which each names the one before."""
    written = [f"let a0 = {first}", *(f"let a{at} = {step.format(f'a{at - 1}')}" for at in range(1, count))]
    return {"p.policy": policy("\n".join((*written, f'filter "f" {{ require {last.format(f"a{count - 1}")} }}')))}


def functions(step: str, leaf: str, count: int) -> Texts:
    """Functions of which each calls the one before."""
    written = ["function f0(x: int): int = x"]
    written += [f"function f{at}(x: int): int = {step.format(f'f{at - 1}')}" for at in range(1, count)]
    return {"p.policy": policy("\n".join((*written, f'filter "f" {{ require {leaf.format(f"f{count - 1}")} }}')))}


def libraries(count: int, *, uses: bool, in_one_file: bool = False, ways: int = 1) -> Texts:
    """Libraries of which each imports those before it, `ways` in a layer."""

    def name(at: int, way: int) -> str:
        return f"l{at}x{way}"

    blocks, imports = {}, {}
    for at in range(count):
        for way in range(ways):
            below = [name(at - 1, other) for other in range(ways)] if at else []
            value = " + ".join(f"{one}.x" for one in below if uses) or "node.podCount"
            blocks[name(at, way)] = f'library "{name(at, way)}" {{ let x = {value} }}'
            imports[name(at, way)] = "".join(f'import "{one}" ' for one in below)
    last = name(count - 1, 0)
    own = policy(f'filter "f" {{ require {last}.x > 0 }}')
    if in_one_file:
        return {"p.policy": "".join(f'import "{one}" ' for one in blocks) + " ".join((*blocks.values(), own))}
    texts = {f"{one}.policy": imports[one] + block for one, block in blocks.items()}
    return {**texts, "p.policy": f'import "{last}" {own}'}


def wide_calls(parts: int, calls: int) -> str:
    """Calls of a function with so many parts."""
    body = " + ".join(["x"] * parts) if parts < 60 else f"[{', '.join(['x'] * parts)}].sum()"
    return policy(
        f"function f(x: int): int = {body} " + " ".join(f"let a{at} = f(node.podCount + {at})" for at in range(calls))
    )


MEMBERS: Mapping[str, tuple[int, str]] = {
    "scores": (13, 'score "s#" weight 1 normalize minmax = node.podCount + #'),
    "filters": (17, 'filter "s#" when pod.priority > # { require node.podCount > # }'),
    "texts": (14, 'filter "s#" { require node.podCount > # else "{node.podCount} of {pod.name}" }'),
    "permits": (14, 'permit "s#" when node.podCount > # { delay: 1s }'),
    "quotas": (21, 'quota "s#" when pod.priority > # { limit: {cpu: 4} borrow: true }'),
    "gangs": (21, 'gang "s#" when pod.priority > # { key: pod.name min: 2 timeout: 1min }'),
    "log lines": (9, 'on reserve log "{node.name} {pod.name}"'),
    "wrong types": (6, 'let a# = 1 + "a"'),
    "unknown fields": (6, "let a# = node.podCuont"),
    "unknown functions": (7, "let a# = clmp(1)"),
    "unknown names": (4, "let aaaaaaaaaaaaaaaaaaaaaaaaaaaaa# = aaaaaaaaaaaaaaaaaaaaaaaaaaaab#"),
}
"""A member with a number -> as many of it as its words allow."""
REPEATED: Mapping[str, Callable[[int], str]] = {
    "opening brackets": lambda count: policy(f"let x = {'(' * count}1"),
    "closing brackets": lambda count: policy(f"let x = 1{')' * count}"),
    "all brackets": lambda count: policy(f"let x = {'([{' * (count // 3)}"),
    "braces": lambda count: "{" * count,
    "blocks": lambda count: 'policy "p" { filter "f" {' * (count // 6),
    "types": lambda count: policy(f"param x: {'list(' * (count // 3)}int{')' * (count // 3)} = []"),
    "types within the limit": lambda count: policy(f"param x: {'list(' * 60}int{')' * 60} = []"),
    "minus": lambda count: policy(f"let x = {'-' * count}1"),
    "not": lambda count: policy(f"let x = {'!' * count}true"),
    "sum": lambda count: policy(f"let x = 1{' + 1' * (count // 2)}"),
    "and": lambda count: policy(f"let x = true{' && true' * (count // 2)}"),
    "conditionals": lambda count: policy(f"let x = {'true ? 1 : ' * (count // 4)}1"),
    "selects": lambda count: policy(f"let x = pod{'.name' * (count // 2)}"),
    "indexes": lambda count: policy(f"let x = pod{'[0]' * (count // 3)}"),
    "methods": lambda count: policy(f"let x = pod.name{'.trim()' * (count // 4)}"),
    "list": lambda count: policy(f"let x = [{'1, ' * (count // 2)}1]"),
    "map": lambda count: policy("let x = {" + "".join(f'"{at}": 1, ' for at in range(count // 4)) + "}"),
    "holes": lambda count: policy(f"""filter "f" {{ require true else "{"{1}" * min(count, 3000)}" }}"""),
    "open holes": lambda count: policy(f"""filter "f" {{ require true else "{"{" * min(count, 9000)}" }}"""),
    "string": lambda count: policy(f'let x = "{"a" * 9_990}" + "{"b" * count}"'),
    "number": lambda count: policy(f"let x = {'9' * count}"),
    "fraction": lambda count: policy(f"let x = 0.{'9' * 200} + 1e{'9' * 200} + {'9' * count}.0"),
    "quantity": lambda count: policy(f"let x = {'9' * 200}Gi let y = {'9' * 200}d"),
    "name": lambda count: policy(f"let {'a' * count} = 1"),
    "comments": lambda count: "/// a\n" * count + policy(""),
    "one comment": lambda count: f"// {'a' * 900_000}\n" + policy(""),
    "spaces": lambda count: " " * 900_000 + policy(""),
    "dots": lambda count: policy(f'test "t" {{ given param {"a." * (count // 2)}a = 1 }}'),
    "members": lambda count: policy(" ".join(f'filter "f{at}" {{ require true }}' for at in range(count // 6))),
    "policies": lambda count: " ".join(f'policy "p{at}" {{ scheduler "s{at}" }}' for at in range(count // 12)),
    "requires": lambda count: policy(f'filter "f" {{ {"require node.ready " * (count // 4)} }}'),
    "mistakes": lambda count: policy(" ".join(f"let x{at} = y{at}" for at in range(count // 4))),
    "params": lambda count: policy(" ".join(f"param x{at}: int = 1 range [0, 9]" for at in range(count // 12))),
    "overlays": lambda count: (
        policy("")
        + " ".join(
            f'overlay "o{at}" on "p" when pod.priority > {at} {{ filter "f" {{ require node.ready }} }}'
            for at in range(count // 60)
        )
    ),
    "tests": lambda count: 'policy "p" {' + "".join(f'test "t{at}" {{ after 1s }}' for at in range(count // 60)) + "}",
    **{
        name: lambda count, words=words, one=one: policy(
            " ".join(one.replace("#", str(at)) for at in range(count // words))
        )
        for name, (words, one) in MEMBERS.items()
    },
    "keys": lambda count: policy("queue { order by " + ", ".join(["pod.priority desc"] * (count // 5)) + "}"),
    "annotations": lambda count: policy(
        "bind { annotations: {" + "".join(f'"a/k{at}": "{{node.name}} {{pod.name}}",' for at in range(4900)) + "}}"
    ),
    "choices": lambda count: policy(f"param x: int = 1 values [{', '.join(map(str, range(count // 2 - 20)))}]"),
    "known names": lambda count: policy(
        "let x = node.name in [" + ", ".join(f'"n{at}"' for at in range(count // 3)) + "]"
    ),
    "objects": lambda count: (
        'policy "p" { test "t" {'
        + "".join(f' given node "n{at}" given pod "q{at}"' for at in range(count // 7))
        + "} }"
    ),
    "policies with imports": lambda count: (
        "".join(f'import "l{at}" as k{at} library "l{at}" {{ let x = 1 }} ' for at in range(450))
        + " ".join(
            f'policy "p{at}" {{ scheduler "s{at}" filter "f" {{ {"require node.ready " * (count // 180)} }} }}'
            for at in range(40)
        )
    ),
    "overlays with lets": lambda count: (
        policy(" ".join(f"let a{at} = node.podCount" for at in range(count // 12)))
        + "".join(f' overlay "o{at}" on "p" {{ let b{at} = a{at} }}' for at in range(min(count // 20, 490)))
    ),
    "calls": lambda count: wide_calls(40, count // 9),
    "calls of a large function": lambda count: wide_calls(900, 900),
    "cycle": lambda count: policy(" ".join(f"let x{at} = x{(at + 1) % 3000} + 1" for at in range(3000))),
}
"""A construct -> a text of about so many words and signs."""


def every_line() -> Iterator[tuple[str, Texts]]:
    """Each construct in a line as long as it may be, and longer."""
    for name, (first, step, last) in LINES.items():
        for count in LETS:
            yield f"lets, {name}, {count}", lets(first, step, last, count)
    for step in (
        "{}(x)",
        "{}(x) + 1",
        "{0}(x) + {0}(x + 1)",
        "{}(3)",
        "[x].map(v, {}(v)).sum()",
        "{}(x)" + " + 1" * 50,
    ):
        for leaf in ("{}(node.podCount) > 0", "node.pods.all(v, {}(v.priority) > 0)"):
            for count in (5, 16, 17, 300):
                yield f"functions, {step}, {leaf}, {count}", functions(step, leaf, count)
    yield "libraries in a line", libraries(400, uses=False)
    yield "libraries in one file", libraries(400, uses=False, in_one_file=True)
    yield "layers of libraries", libraries(40, uses=False, ways=2)
    for count in LETS:
        yield f"libraries that name each other, {count}", libraries(min(count, 400), uses=True)
        yield (
            f"libraries of one file that name each other, {count}",
            libraries(min(count, 400), uses=True, in_one_file=True),
        )
        yield f"layers of libraries that name each other, {count}", libraries(min(count, 40), uses=True, ways=2)
    yield "more libraries in a line", libraries(1500, uses=False)
    circle = {f"l{at}.policy": f'import "l{(at + 1) % 400}" library "l{at}" {{ let x = 1 }}' for at in range(400)}
    yield "libraries in a circle", circle
    for name, write in REPEATED.items():
        for count in (29_900, 31_000):
            yield f"{name}, {count}", {"p.policy": write(count)}


# --- what is done with them ------------------------------------------------------------------------------

_NODE = {"metadata": {"name": "n", "labels": {"a": "c", "zone": "z"}}, "status": {"allocatable": {"cpu": "4"}}}
_POD = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [{"name": "c"}]}}
CLUSTER = {"nodes": [_NODE], "pods": [], "pending": [_POD]}


def everything(texts: Texts) -> str:
    """Compile, lint, test, format and explain; what was wrong with the texts, in one line.

    Raises:
        AssertionError: some of it took too long, or the last resort of compiling was needed.
    """
    from policyengine.compiler.front import checked
    from policyengine.diagnosis.explain import explain
    from policyengine.kube.policies.compiling import compiled
    from policyengine.language.diagnostics import Severity, render
    from policyengine.language.format import format_source
    from policyengine.language.parse import SourceError, decode_source
    from policyengine.plugins.facts import plugin_facts

    found = soon(lambda: compiled(texts))
    linted = soon(lambda: compiled(texts, fail_level=Severity.INFO))
    for one in (found, linted):
        assert one.problem is None or "a bug" not in one.problem.message, one.problem
        assert one.problem is None or len(one.problem.message.encode()) < 4000
    for profile in found.profiles[:3]:
        soon(lambda profile=profile: explain(CLUSTER, profile))
    try:
        sources = [decode_source(text.encode(), key) for key, text in texts.items()]
    except SourceError as error:
        return str(error)
    result = soon(lambda: checked(sources, plugin_facts()))
    soon(lambda: [format_source(source) for source in sources])
    for source in sources:
        render([finding for finding in result.findings if finding.file == source.file], source)
    return found.problem.message if found.problem is not None else ""


def soon(work: Callable[[], T]) -> T:
    """What some work comes to.

    Raises:
        AssertionError: it took too long.
    """
    start = time.process_time()
    found = work()
    spent = time.process_time() - start
    assert spent < LONGEST, f"took {spent:.1f} s of CPU"
    return found


def main(arguments: list[str]) -> int:
    """0 when every text ended as it should."""
    until = time.monotonic() + (float(arguments[0]) if arguments else SECONDS)
    for name, texts in every_line():
        print(name, flush=True)
        everything(texts)
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        assert taken < MEMORY, f"took {taken} MiB"
    seed = random.SystemRandom().randrange(2**32)
    while time.monotonic() < until:
        seed += 1
        try:
            everything(in_its_place(random.Random(seed)))
        except BaseException:
            print(f"seed {seed}", flush=True)
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
