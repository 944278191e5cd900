"""Expressions as text, drawn at random; and what columns and a naive interpreter make of them."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from policyengine.compiler.columns.column import Column, Failed
from policyengine.compiler.columns.frame import Decision, Frame, Scalar, Vector
from policyengine.compiler.coverage import Coverage
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.compiler.lower.vector import column_closure
from policyengine.language import ir
from tests.compiler import naive
from tests.compiler.naive import Place
from tests.compiler.naive_functions import NOTHING, NoValue, Some
from tests.compiler.worlds import PlainNode, PlainPod, World
from tests.language.checking import checked

FAILED = object()
_WORDS = ('""', '"a"', '"b"', '"zone-a"', '"Zone-B"', '"node9"', '"10"', '"-7"', '"x y"', '"9223372036854775807"')
_POD_TESTS = (
    "{label_of_p} == {label_of_pod}",
    "p.requests.cpu {op} pod.requests.cpu",
    "p.requests.cpu {op} 500m",
    'p.images.exists(i, i.contains("side"))',
    '"app" in p.labels && !({label_of_p} in ["", "a"])',
    'p.namespace == "prod" || {int_of_p} > 0',
    'toInt(p.labels[?"tier"]).hasValue()',
    "{int_of_p} {op} {int_of_p}",
)
_POD_INTS = (
    *("p.priority", 'p.requests[?"nvidia.com/gpu"].orValue(3)', "size(p.images)", "pod.priority", "7"),
    *("p.labels.size()", "(p.requests.memory / 1Mi > 2.0 ? 1 : 9223372036854775807)"),
)
_POD_DOUBLES = (
    *("double(p.priority)", "p.requests.cpu / 7m", "0.1", "ratio(p.requests.memory, 3Gi)", "1e308"),
    *("1.0 / double(p.priority)", "p.requests.memory / pod.requests.memory"),
)
_QUANTITIES = (
    *("({q} + {q})", "({q} - {q})", "min({q}, {q})", "max({q}, {q})", "abs({q})", "(-({q}))", "({q} * {int})"),
    *("({q} / {int})", "({q} * {double})", "({q} / {double})", "({bool} ? {q} : {q})"),
)
GRAMMAR: dict[str, tuple[str, ...]] = {
    "op": ("<", "<=", ">", ">=", "==", "!="),
    "sign": ("+", "-", "*", "/"),
    "macro": ("exists", "all", "exists_one"),
    "end": (".sum()", ".min().orValue(-1)", ".max().orValue(-1)", ".size()"),
    "double_end": (".sum()", ".avg()", ".stddev()", ".min().orValue(0.5)", ".max().orValue(0.5)"),
    "memory_end": (".sum()", ".avg()", ".stddev()", ".min().orValue(1Gi)", ".max().orValue(1Gi)"),
    "word": _WORDS,
    "key": ('"app"', '"tier"', '"topology.kubernetes.io/zone"'),
    "bool": (
        *("node.ready", "node.unschedulable", "({key} in node.labels)", "({key} in pod.labels)"),
        *("({int} {op} {int})", "({double} {op} {double})", "({string} {op} {string})", "({cpu} {op} {cpu})"),
        *("({memory} {op} {memory})", "({optional_string} == {optional_string})"),
        *("{string}.startsWith({string})", "{string}.endsWith({string})", "{string}.contains({string})"),
        *("!({bool})", "{optional_string}.hasValue()", "{optional_int}.hasValue()", "({bool} ? {bool} : {bool})"),
        *(
            '("app" in node.labels && node.labels["app"] == {string})',
            "(has(node.labels.tier) && node.labels.tier < {word})",
        ),
        *("({bool} && {bool})", "({bool} || {bool})", "({bool} && {bool} && {bool})"),
        *("node.taints.{macro}(t, t.key == {string})", "node.taints.{macro}(t, t.value == {string})"),
        *("pod.images.{macro}(i, i.contains({string}))", "({string} in [{word}, {string}])"),
    ),
    "int": (
        *("node.podCount", "pod.priority", "0", "1", "-1", "2", "7", "100", "2147483648", "9007199254740993"),
        *("4611686018427387904", "9223372036854775807", "(-9223372036854775807 - 1)", "size(node.taints)"),
        *("({int} {sign} {int})", "({int} % {int})", "min({int}, {int})", "max({int}, {int})", "(-({int}))"),
        *("abs({int})", "floor({double})", "ceil({double})", "round({double})", "clamp({int}, {int}, {int})"),
        *("({bool} ? {int} : {int})", "{optional_int}.orValue({int})", "size({string})"),
    ),
    "double": (
        *("0.0", "-0.0", "1.0", "-1.5", "0.1", "0.5", "2.5", "1e9", "4611686018427387904.0", "1e308"),
        *("(1.0 / 0.0)", "(0.0 / 0.0)", "double({int})", "({double} {sign} {double})", "ratio({double}, {double})"),
        *("min({double}, {double})", "max({double}, {double})", "ratio({int}, {int})", "({memory} / {memory})"),
        *("ratio({memory}, {memory})", "({cpu} / {cpu})", "ratio({cpu}, {cpu})", "(-({double}))", "abs({double})"),
        *("sqrt({double})", "clamp({double}, {double}, {double})", "({bool} ? {double} : {double})"),
    ),
    "string": (
        *("node.name", "node.zone", "pod.name", "{word}", '("app" in node.labels ? node.labels["app"] : {word})'),
        *("({string} + {string})", "{string}.lowerAscii()", "string({int})", "({bool} ? {string} : {string})"),
        "{optional_string}.orValue({string})",
    ),
    "optional_string": (
        *("node.labels[?{key}]", "pod.labels[?{key}]", 'node.annotations[?"note"]', "node.labels[?{string}]"),
        "{optional_string}.or({optional_string})",
    ),
    "optional_int": (
        *('pod.requests[?"nvidia.com/gpu"]', 'node.free[?"nvidia.com/gpu"]', "toInt({string})"),
        *("toInt({optional_string})", "{optional_int}.or({optional_int})", "{optional_int}.optMap(h, h + {int})"),
    ),
    **{
        name: (
            *(f"{root}.{name}" for root in ("node.allocatable", "node.used", "node.free", "pod.requests")),
            *literals,
            *(form.replace("{q}", f"{{{name}}}") for form in _QUANTITIES),
        )
        for name, literals in (("cpu", ("1m", "250m", "1000m")), ("memory", ("1Ki", "1Gi", "1048576Gi")))
    },
    # --- lists of nodes and pods: `p` is a pod, `q` one whose node is `node`, `n` a node -----------------
    **{f"label_of_{root}": (f'{root}.labels[?{{key}}].orValue("?")',) for root in ("p", "q", "n", "pod")},
    "int_of_p": (*_POD_INTS, "({int_of_p} {sign} {int_of_p})"),
    "double_of_p": (*_POD_DOUBLES, "({double_of_p} * {double_of_p})", "({double_of_p} + {double_of_p})"),
    "test_of_p": _POD_TESTS,
    "pods": (
        *("pods", 'node.domain("app").pods', 'node.domain("tier").pods', "{pods}.filter(p, {test_of_p})"),
        "{pods}.filter(p, {test_of_p})",
    ),
    "int_of_q": (
        *(text.replace("p.", "q.") if text != "pod.priority" else text for text in _POD_INTS if text != "pod.priority"),
        *("pod.priority", "node.podCount", "size(node.taints)", "({int_of_q} {sign} {int_of_q})"),
    ),
    "test_of_q": (
        *("{label_of_q} == {label_of_pod}", "q.requests.cpu {op} node.free.cpu", "{int_of_q} {op} {int_of_q}"),
        'q.namespace == "prod" || {int_of_q} > 0',
    ),
    "own_pods": ("node.pods", "node.nominated", "{own_pods}.filter(q, {test_of_q})"),
    "int_of_n": (
        *("n.podCount", "pod.priority", "3", "n.pods.size()", "n.labels.size()", "n.nominated.size()"),
        *("n.pods.map(x, x.priority).max().orValue(0)", 'n.free[?"nvidia.com/gpu"].orValue(1)'),
        *('n.domain("app").pods.size()', "({int_of_n} {sign} {int_of_n})"),
    ),
    "test_of_n": (
        *("n.ready", "{label_of_n} == {label_of_pod}", "n.taints.all(t, t.key != {label_of_pod})"),
        *("n.free.cpu {op} pod.requests.cpu", "n.pods.exists(p, {test_of_p})", "{int_of_n} {op} {int_of_n}"),
    ),
    "nodes": ("nodes", 'node.domain("app").nodes', 'node.domain("tier").nodes', "{nodes}.filter(n, {test_of_n})"),
    "list_int": (
        *("{pods}.size()", "{own_pods}.size()", "{nodes}.size()", "{pods}.map(p, {int_of_p}){end}"),
        *("{own_pods}.map(q, {int_of_q}){end}", "{nodes}.map(n, {int_of_n}){end}"),
        *("{pods}.map(p, {int_of_p}).filter(v, v {op} 3).map(w, w + w){end}",),
    ),
    "list_double": (
        *("{pods}.map(p, {double_of_p}){double_end}", "{nodes}.map(n, ratio(n.used.memory, 1Gi) + 0.1){double_end}"),
        "{own_pods}.map(q, q.requests.memory / node.allocatable.memory){double_end}",
    ),
    "list_memory": (
        *("{pods}.map(p, p.requests.memory){memory_end}", "{own_pods}.map(q, q.requests.memory){memory_end}"),
        *("{nodes}.map(n, n.free.memory){memory_end}", "{nodes}.map(n, n.allocatable.memory){memory_end}"),
    ),
    "list_bool": (
        *("{pods}.{macro}(p, {test_of_p})", "{own_pods}.{macro}(q, {test_of_q})", "{nodes}.{macro}(n, {test_of_n})"),
        *("{label_of_pod} in {pods}.map(p, {label_of_p})", "{label_of_pod} in {nodes}.map(n, {label_of_n})"),
        'pod.labels[?"tier"].optMap(v, {pods}.exists(p, p.labels[?"app"].orValue("") == v)).orValue(true)',
        *("({list_bool}) && node.ready || {list_bool}", "{list_int} < {list_int}"),
    ),
}
"""What is drawn -> its forms; `{int}` in one is another drawn text. A form without any ends the recursion."""
LISTS = ("list_bool", "list_double", "list_int", "list_memory")
ROWS = ("bool", "cpu", "double", "int", "memory", "optional_int", "optional_string", "string")


@cache
def texts(what: str, depth: int) -> st.SearchStrategy[str]:
    """Expressions of a kind, nested so deep at most where there are leaves."""
    forms = [form for form in GRAMMAR[what] if depth or "{" not in form] or list(GRAMMAR[what])
    return st.sampled_from(forms).flatmap(lambda form: _filled(form, max(depth - 1, 0)))


def _filled(form: str, depth: int) -> st.SearchStrategy[str]:
    kinds = re.findall(r"\{(\w+)\}", form)
    whole = re.sub(r"\{\w+\}", "{}", form)
    return st.tuples(*(texts(kind, depth) for kind in kinds)).map(lambda parts: whole.format(*parts))


def typed(text: str) -> ir.Expr | None:
    """The checked tree; None where the checker refuses it: see `REFUSED`."""
    policies, findings, _ = checked(f'policy "p" {{ let it = {text} }}')
    assert all(finding.code in REFUSED for finding in findings), (text, findings)
    return None if findings else policies[0].lets[-1].value


REFUSED = ("PE1006", "PE1009", "PE1017")
"""A constant without a value, a variable named as one around it, a cost of nodes times nodes."""


def drawn(data: st.DataObject, what: str, depth: int = 3) -> tuple[str, ir.Expr]:
    """An expression of a kind, and its tree."""
    text = data.draw(texts(what, depth).filter(lambda text: typed(text) is not None))
    expr = typed(text)
    assert expr is not None
    return text, expr


class Validation(Coverage):
    """Asserts the rules of `Column` of the column of each expression."""

    def __init__(self) -> None:
        pass

    def scalar(self, expr: ir.Expr, closure: Scalar) -> Scalar:
        return closure

    def vector(self, expr: ir.Expr, vector: Vector) -> Vector:
        def validated(frame: Frame) -> Column:
            column = vector(frame)
            column.validate(frame.count, expr.type)
            return column

        return validated


def columns(expr: ir.Expr | str, world: World, pod: PlainPod, rows: Any = None) -> list[Any]:
    """The lowered expression's values, a row each; `FAILED` where a row has none, None where an optional is empty."""
    tree = typed(expr) if isinstance(expr, str) else expr
    assert tree is not None
    view = world.view()
    if pod.name not in view.pods:
        view.add_or_update_pod(pod.decode())
    hoists = Hoists()
    vector = Scope(column_closure, watch=Validation()).lower(tree, hoists)
    snapshot = view.snapshot()
    with np.errstate(all="ignore"):
        frame = Frame(snapshot.nodes, rows, hoists.columns(Decision(view.pods[pod.name], snapshot)))
        values = vector(frame).to_list(frame.count)
    return [FAILED if isinstance(value, Failed) else value for value in values]


def expected(expr: ir.Expr, world: World, pod: PlainPod) -> list[Any]:
    """The same by the naive interpreter."""
    everyone = World(world.nodes, [*world.pending, pod])
    return [_value_at(expr, everyone, node, pod) for node in world.nodes]


def _value_at(expr: ir.Expr, world: World, node: PlainNode, pod: PlainPod) -> Any:
    try:
        value = naive.evaluate(expr, Place(pod, node, {}, {}, world))
    except NoValue:
        return FAILED
    if value == NOTHING:
        return None
    return value.value if isinstance(value, Some) else value


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b
