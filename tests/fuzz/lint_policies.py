"""Writes policies for the proofs of lint: conditions, scores and keys that have one outcome, and others that nearly do.

What a policy says is drawn from forms, level by level; what is drawn for the worlds is at the edge of something.
"""

from __future__ import annotations

import random
import re

from tests.compiler.worlds import ZONE, PlainNode, PlainPod, World

_X = 'node.labels[?"x"]'
_INTS = ("0", "1", "2", "3", "3", "5", "-1", "7", "10", "49", "100", "9223372036854775807", "2147483647")
_DOUBLES = ("0.0", "1.0", "-1.0", "0.5", "3.0", "49.0", "100.0", "701.0", "1e308", "33.333333333333336")
GRAMMAR: dict[str, tuple[str, ...]] = {
    "op": ("<", "<=", ">", ">=", "==", "!="),
    "i": _INTS,
    "d": _DOUBLES,
    "c": ("0", "1m", "250m", "4", "100"),
    "m": ("0", "1Ki", "1Gi", "1048576Gi"),
    "s": ('"a"', '"b"', '""', '"zone-a"'),
    "int": (
        *("pod.priority", "node.podCount", f"toInt({_X}).orValue({{i}})", "size(pod.name)", "most", "{i}"),
        *("({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "(-({int}))"),
        *("clamp({int}, {i}, {i})", "min({int}, {int})", "max({int}, {int})", "abs({int})", "floor({double})"),
        *(
            "round({double})",
            "ceil({double})",
            "int({double})",
            "({bool} ? {int} : {int})",
            "clamp({int}, 0, 49) / {i}",
        ),
        *(f"toInt({_X}).optMap(o, clamp(o, 0, 9)).optMap(o, o * {{i}}).orValue({{i}})", "node.pods.size()"),
        *("node.pods.map(q, q.priority).sum()", "node.pods.map(q, clamp(q.priority, 0, 3)).max().orValue({i})"),
    ),
    "double": (
        *("double({int})", f'double({_X}.orValue("nan"))', f"toDouble({_X}).orValue({{d}})", "{d}", "sqrt({double})"),
        *(
            "exp({double})",
            "exp(701.0 + ratio({double}, {double}))",
            "ln({double})",
            "(clamp({double}, 0.0, {d}) / {d})",
        ),
        *("({double} + {double})", "({double} - {double})", "({double} * {double})", "({double} / {double})"),
        *("ratio({int}, {int})", "ratio({double}, {double})", "clamp({double}, {d}, {d})", "min({double}, {double})"),
        *("max({double}, {double})", "abs({double})", "(-({double}))", "ratio({cpu}, {cpu})", "({memory} / {memory})"),
        *(f"{_X}.optMap(o, ratio({{cpu}}, {{cpu}})).orValue({{d}})", "double({cpu})", "share({double}, {double})"),
        *("optional.of({double}).optMap(o, o * {d}).orValue({d})", "({bool} ? {double} : {double})"),
        *("node.pods.map(q, clamp(double(q.priority), {d}, {d})).avg()", "node.pods.map(q, 0.1).avg()"),
        *("node.pods.map(q, double(q.priority)).sum()", "node.pods.map(q, double(q.priority) + 0.1).stddev()"),
        *("[{double}, {double}].avg()", "[{double}, {double}].sum()", "[{double}, {double}].stddev()"),
    ),
    "cpu": (
        *("node.free.cpu", "node.used.cpu", "node.allocatable.cpu", "pod.requests.cpu", "{c}"),
        *("({cpu} * {i})", "({cpu} * {d})", "({cpu} / {i})", "({cpu} / {d})", "({cpu} - {cpu})", "min({cpu}, {cpu})"),
    ),
    "memory": (
        *("node.free.memory", "node.used.memory", "node.allocatable.memory", "pod.requests.memory", "{m}"),
        *("({memory} + {memory})", "({memory} * {i})", "({memory} / {double})", "clamp({memory}, {m}, {m})"),
    ),
    "string": ("node.zone", "pod.name", f'{_X}.orValue("a")', 'pod.labels[?"app"].orValue("b")', "{s}"),
}
"""What is drawn -> its forms."""
CONDITIONS = (
    *("{term} {op} {const}", "{term} {op} {const}", "{term} {op} {const}", "{term} {op} {other}", "!({bool})"),
    *("({term} {op} {const} && {term} {op} {const})", "({term} {op} {const} || {term} {op} {const})"),
    *("({term} {op} {const} || !({term} {op} {const}))", "(10 / node.podCount > 3 ? {term} {op} {const} : {bool})"),
    *("({bool} && {bool})", "({bool} || {bool})", "({bool} ? {bool} : {bool})", "node.ready", f"{_X}.hasValue()"),
    *("{string} {eq} {s}", "{string} in [{s}, {s}]", "{int} in [{i}, {i}]", "small", "node.pods.exists(q, {bool})"),
)
"""Forms of conditions: `term` is one of a few terms of the policy, so that conditions are about the same."""
FAILING = (("int", "10 / pod.priority"), ("int", "10 / node.podCount"), ("cpu", "node.free.cpu * 4"))
NAN = (
    "sqrt(double(pod.priority))",
    f'double({_X}.orValue("nan"))',
    "1.0 / double(pod.priority)",
    "ln(double(pod.priority))",
)
PRIORITIES = (-(2**31), -5, -1, 0, 1, 2, 3, 4, 5, 7, 8, 49, 50, 100, 700, 2**31 - 1)
LABELS = ("0", "1", "-7", "49", "nan", "inf", "-inf", "a", "b", "", "9223372036854775807", "1e308", "0.1", "zone-a")


KEYS = ("pod.priority", "pod.priority desc", "pod.namespace", "pod.name", "pod.uid", "5", "size(pod.name) desc", "most")
"""Keys of an order."""
UNIQUE = (
    *("pod.namespace", "pod.name", "pod.uid", 'pod.namespace + "/" + pod.name', 'pod.name + "/" + pod.namespace'),
    *('pod.namespace + "-" + pod.name', "pod.namespace + pod.name", 'pod.labels[?"app"].orValue("") + pod.uid'),
)
"""Keys of a gang, some of which no two pods share."""
DURATIONS = ("1s", "30s", "60s", "90s", "2min", "least", "least + 30s", "1s * pod.priority")


class Writer:
    """Writes one policy."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._said: list[str] = []
        self._terms = [("int", "pod.priority"), chance.choice(FAILING), ("double", chance.choice(NAN))]
        kind = chance.choice(("int", "double", "cpu", "memory"))
        self._terms.append((kind, self.text(kind, 3)))
        self._of_pods = [*KEYS, *(f"({self.of_pod()} ? {n} : 2)" for n in (1, 2))]

    def text(self, kind: str, depth: int) -> str:
        if kind == "bool":
            return self.condition(depth)
        forms = GRAMMAR[kind]
        if depth <= 0:
            forms = tuple(form for form in forms if "{" not in form) or forms
        return self._filled(self._chance.choice(forms), depth - 1)

    def condition(self, depth: int) -> str:
        """A condition, now and then one that was written before."""
        if self._said and self._chance.random() < 0.15:
            return self._chance.choice(self._said)
        form = self._chance.choice(CONDITIONS if depth > 0 else CONDITIONS[:3])
        kind, term = self._chance.choice(self._terms)
        const = {"int": "i", "double": "d", "cpu": "c", "memory": "m"}[kind]
        other = self._chance.choice([text for of, text in self._terms if of == kind])
        parts = {"{term}": term, "{const}": f"{{{const}}}", "{other}": other, "{eq}": self._chance.choice(("==", "!="))}
        for name, value in parts.items():
            form = form.replace(name, value)
        return self._filled(form, depth - 1)

    def _filled(self, form: str, depth: int) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self.text(found[1], depth), form)

    def said(self) -> str:
        self._said.append(self.condition(2))
        return self._said[-1]

    def of_pod(self) -> str:
        """A condition that reads no node."""
        while "node." in (text := self.condition(1)):
            pass
        return text

    def policy(self) -> str:
        chance = self._chance
        lines = ["param most: int = 5 range [1, 10]", "param least: duration = 30s range [1s, 90s]"]
        share = "optional.of(ratio(a, b)).optMap(r, 100.0 * r).orValue(0.0)"
        lines += [f"function share(a: double, b: double): double = {share}"]
        lines += [f"let small = {self._filled('pod.priority {op} {i} || 10 / pod.priority {op} {i}', 0)}"]
        for name in "fgh"[: chance.randint(1, 3)]:
            when = f" when {self.of_pod()}" if chance.random() < 0.4 else ""
            requires = [self._require() for _ in range(chance.randint(1, 3))]
            lines += [f'filter "{name}"{when} {{ {" ".join(requires)} }}']
        for name in "st":
            on_error = f" on error {self.text('d', 0)}" if chance.random() < 0.3 else ""
            value = f"clamp({self.text('double', 3)}, 0.0, {chance.choice(('1.0', '3.0', '100.0', '200.0'))})"
            lines += [f'score "{name}" weight {chance.choice((1, 1, 1, 30, 1000))} = {value}{on_error}']
        for name in "ij":
            key = chance.choice(UNIQUE)
            lines += [f'gang "{name}" when {self.of_pod()} {{ key: {key} min: {chance.choice("122")} timeout: 60s }}']
        lines += [f'permit "w" {{ delay: {self._duration()} timeout: {self._duration()} }}']
        lines += [f"queue {{ order by {', '.join(chance.choices(self._of_pods, k=chance.randint(1, 4)))} }}"]
        return 'policy "p" {\n' + "\n".join(lines) + "\n}"

    def _duration(self) -> str:
        one, other = self._chance.choices(DURATIONS, k=2)
        return self._chance.choice((one, other, f"({self.condition(0)} ? {one} : {other})"))

    def _require(self) -> str:
        on_error = self._chance.choice(
            ("", "", "", " on error true", " on error false", f" on error {self.condition(0)}")
        )
        return f"require {self.said()}{on_error}"


def worlds(chance: random.Random) -> list[World]:
    """Small clusters of what is at the edge of something."""
    return [World([_node(chance, n) for n in range(3)]) for _ in range(4)]


def pods(chance: random.Random) -> list[PlainPod]:
    """Pods that wait, two of one name in different namespaces."""
    return [*(a_pod(chance, f"q{n}") for n in range(5)), a_pod(chance, "q0", "ns-q0"), a_pod(chance, "q0-q0")]


def a_pod(chance: random.Random, name: str, namespace: str = "ns") -> PlainPod:
    labels = {key: chance.choice(LABELS) for key in ("app", "x") if chance.random() < 0.7}
    memory = chance.choice((0, 1, 2**30, 2**45 + 1, 2**60))
    cpu, priority = chance.choice((0, 1, 100, 250, 4000)), chance.choice(PRIORITIES)
    uid = {"metadata": {"uid": f"{namespace}/{name}"}}
    return PlainPod(name, labels, cpu, memory, None, priority, namespace=namespace, more=uid)


def _node(chance: random.Random, number: int) -> PlainNode:
    labels = {key: chance.choice(LABELS) for key in ("app", "x", "x", ZONE) if chance.random() < 0.8}
    pods = [a_pod(chance, f"p{number}-{i}") for i in range(chance.choice((0, 0, 1, 2, 3)))]
    cpu, memory = chance.choice((0, 1, 250, 4000, 2**62)), chance.choice((0, 1, 2**30, 2**45 + 1, 2**63 - 1))
    return PlainNode(f"n{number}", labels, {}, cpu, memory, ready=chance.random() < 0.5, pods=pods)
