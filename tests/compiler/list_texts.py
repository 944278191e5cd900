"""Expressions over lists of nodes and pods, as text, at random: what an author might write, and some he would not."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.compiler.worlds import KEYS, WORDS

Texts = st.SearchStrategy[str]
_KEYS = st.sampled_from(KEYS)
_WORDS = st.sampled_from(WORDS)
_OPS = st.sampled_from(("<", "<=", ">", ">=", "==", "!="))
POD_LISTS = ("node.pods", "node.nominated", "pods", 'node.domain("app").pods', 'node.domain("tier").pods', "n.pods")
NODE_LISTS = ("nodes", 'node.domain("app").nodes', 'node.domain("tier").nodes')


def _label(root: str) -> Texts:
    return _KEYS.map(lambda key: f'{root}.labels[?"{key}"].orValue("?")')


@st.composite
def pod_ints(draw: st.DrawFn, p: str, owner: str) -> str:
    """An int of a pod `p`; `owner` is the node whose pods they are, '' where the list spans nodes."""
    leaves = [f"{p}.priority", f'{p}.requests[?"nvidia.com/gpu"].orValue(3)', f"size({p}.images)", "pod.priority", "7"]
    leaves += [f"{p}.labels.size()", f"({p}.requests.memory / 1Mi > 2.0 ? 1 : 9223372036854775807)"]
    if owner:
        leaves += [f"{owner}.podCount", f"size({owner}.taints)"]
    return _joined(draw, leaves, ("+", "-", "*", "/"))


def _joined(draw: st.DrawFn, leaves: list[str], operators: tuple[str, ...]) -> str:
    left = draw(st.sampled_from(leaves))
    if draw(st.booleans()):
        return left
    return f"({left} {draw(st.sampled_from(operators))} {draw(st.sampled_from(leaves))})"


@st.composite
def pod_doubles(draw: st.DrawFn, p: str, owner: str) -> str:
    """A double of a pod."""
    leaves = [f"double({p}.priority)", f"{p}.requests.cpu / 7m", "0.1", f"ratio({p}.requests.memory, 3Gi)", "1e308"]
    leaves += [
        f"1.0 / double({p}.priority)",
        f"{p}.requests.memory / {owner or 'pod'}.{'allocatable' if owner else 'requests'}.memory",
    ]
    return _joined(draw, leaves, ("+", "*"))


@st.composite
def pod_tests(draw: st.DrawFn, p: str, owner: str) -> str:
    """A condition of a pod."""
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return f"{draw(_label(p))} == {draw(_label('pod'))}"
    if kind == 1:
        other = draw(st.sampled_from(("pod.requests.cpu", "500m", f"{p}.requests.cpu * 2")))
        return f"{p}.requests.cpu {draw(_OPS)} {other}"
    if kind == 2:
        return f'{p}.images.exists(i, i.contains("{draw(st.sampled_from(("side", "app", "zz")))}"))'
    if kind == 3:
        return f'"{draw(_KEYS)}" in {p}.labels && !({draw(_label(p))} in ["", "a"])'
    if kind == 4 and owner:
        return f"{p}.requests.cpu {draw(_OPS)} {owner}.free.cpu"
    if kind == 5:
        return f'{p}.namespace == "prod" || {draw(pod_ints(p, owner))} > 0'
    if kind == 6:
        return f'toInt({p}.labels[?"{draw(_KEYS)}"]).hasValue()'
    return f"{draw(pod_ints(p, owner))} {draw(_OPS)} {draw(pod_ints(p, owner))}"


@st.composite
def node_tests(draw: st.DrawFn, n: str) -> str:
    """A condition of a node."""
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return f"{n}.ready"
    if kind == 1:
        return f"{draw(_label(n))} == {draw(_label('pod'))}"
    if kind == 2:
        return f"{n}.taints.all(t, t.key != {draw(_label('pod'))})"
    if kind == 3:
        return f"{n}.free.cpu {draw(_OPS)} pod.requests.cpu"
    if kind == 4:
        return f"{n}.pods.exists(x, {draw(pod_tests('x', n))})"
    return f"{draw(node_ints(n))} {draw(_OPS)} {draw(node_ints(n))}"


@st.composite
def node_ints(draw: st.DrawFn, n: str) -> str:
    """An int of a node."""
    leaves = [f"{n}.podCount", "pod.priority", "3", f"{n}.pods.size()", f"{n}.labels.size()"]
    leaves += [f"{n}.pods.map(x, x.priority).max().orValue(0)", f'{n}.free[?"nvidia.com/gpu"].orValue(1)']
    leaves += [f'{n}.domain("app").pods.size()', f"{n}.nominated.size()"]
    return _joined(draw, leaves, ("+", "-", "*", "/"))


@st.composite
def _lists(draw: st.DrawFn) -> tuple[str, str, str, bool]:
    """(list, variable, its owner, whether it holds pods), filtered at times."""
    of_pods = draw(st.booleans())
    text = draw(st.sampled_from(POD_LISTS[:-1] if of_pods else NODE_LISTS))
    name, owner = ("p", "node" if text in ("node.pods", "node.nominated") else "") if of_pods else ("n", "")
    for _ in range(draw(st.integers(0, 2))):
        test = draw(pod_tests(name, owner) if of_pods else node_tests(name))
        text = f"{text}.filter({name}, {test})"
    return text, name, owner, of_pods


@st.composite
def list_ints(draw: st.DrawFn) -> str:
    """An int made of a list."""
    text, name, owner, of_pods = draw(_lists())
    if draw(st.integers(0, 3)) == 0:
        return f"{text}.size()"
    value = draw(pod_ints(name, owner) if of_pods else node_ints(name))
    how = draw(st.sampled_from((".sum()", ".min().orValue(-1)", ".max().orValue(-1)", ".size()")))
    if draw(st.booleans()):
        return f"{text}.map({name}, {value}).filter(v, v {draw(_OPS)} 3).map(w, w + w){how}"
    return f"{text}.map({name}, {value}){how}"


@st.composite
def list_doubles(draw: st.DrawFn) -> str:
    """A double made of a list."""
    text, name, owner, of_pods = draw(_lists())
    how = draw(st.sampled_from((".sum()", ".avg()", ".stddev()", ".min().orValue(0.5)", ".max().orValue(0.5)")))
    if not of_pods:
        return f"{text}.map(n, ratio(n.used.memory, n.allocatable.memory) + 0.1){how}"
    value = draw(pod_doubles(name, owner))
    return f"{text}.map({name}, {value}){how}"


@st.composite
def list_amounts(draw: st.DrawFn) -> str:
    """An amount of memory made of a list."""
    text, name, _, of_pods = draw(_lists())
    field = "requests.memory" if of_pods else draw(st.sampled_from(("free.memory", "allocatable.memory")))
    how = draw(st.sampled_from((".sum()", ".avg()", ".stddev()", ".min().orValue(1Gi)", ".max().orValue(1Gi)")))
    return f"{text}.map({name}, {name}.{field}){how}"


@st.composite
def list_bools(draw: st.DrawFn) -> str:
    """A bool made of a list."""
    text, name, owner, of_pods = draw(_lists())
    kind = draw(st.integers(0, 4))
    if kind == 0:
        wanted = draw(_label("node" if owner else "pod"))
        return f"{wanted} in {text}.map({name}, {draw(_label(name))})"
    if kind == 1 and of_pods:
        test = f'{name}.labels[?"app"].orValue("") == v'
        return f'{"node" if owner else "pod"}.labels[?"tier"].optMap(v, {text}.exists({name}, {test})).orValue(true)'
    test = draw(pod_tests(name, owner) if of_pods else node_tests(name))
    macro = draw(st.sampled_from(("exists", "all", "exists_one")))
    return f"{text}.{macro}({name}, {test})"


LISTS: dict[str, Texts] = {
    "int": list_ints(),
    "double": list_doubles(),
    "memory": list_amounts(),
    "bool": st.one_of(
        list_bools(),
        st.builds("({}) && node.ready || {}".format, list_bools(), list_bools()),
        st.builds("{} < {}".format, list_ints(), list_ints()),
    ),
}
