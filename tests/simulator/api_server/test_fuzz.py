"""Nothing a client sends breaks the server: objects shaped by the schema itself, with values of any kind in them."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyengine.simulator.api_server.kinds.api_types import Type, struct
from policyengine.simulator.api_server.kinds.served import Kind, Kinds
from tests.simulator.api_server.server_bench import Bench

DEPTH = 5
METHODS = {"create": "POST", "update": "PUT"}
# A Binding without a target is the real server's 500; bindings have tests of their own.
KINDS = [k for k in Kinds() if k.struct is not None and "create" in k.verbs and k.kind != "Binding"]
scalars = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "A_b", "1", "500m", "25%", "/x", "-"])
)


@st.composite
def values(draw: st.DrawFn, type_: Type, depth: int) -> Any:
    """A value of a type, now and then of another."""
    if depth <= 0 or draw(st.integers(0, 9)) == 0:
        return draw(scalars | st.just([]) | st.just({}))
    if type_.kind == "struct":
        fields = struct(type_.ref).fields
        chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=6, unique=True)) if fields else []
        needed = [name for name, field in fields.items() if field.required and draw(st.booleans())]
        return {name: draw(values(fields[name].type, depth - 1)) for name in {*chosen, *needed}}
    if type_.kind == "list" and type_.elem:
        return [draw(values(type_.elem, depth - 1)) for _ in range(draw(st.integers(0, 2)))]
    if type_.kind == "map" and type_.elem:
        return {key: draw(values(type_.elem, depth - 1)) for key in draw(st.sampled_from([[], ["a"], ["cpu", "b/c"]]))}
    by_kind = {"bool": st.booleans(), "int32": st.integers(-2, 70000), "int64": st.integers(-2, 70000)}
    return draw(by_kind.get(type_.kind, scalars))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Kind, Any]:
    kind = draw(st.sampled_from(KINDS))
    body = draw(values(Type("struct", ref=f"{kind.schema_home}:{kind.kind}"), DEPTH))
    if isinstance(body, dict) and draw(st.integers(0, 3)):
        body["metadata"] = {"name": draw(st.sampled_from(["x", "y"])), "labels": {"a": "b"}}
    return kind, body


def path_of(kind: Kind) -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


calm = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])


@calm
@given(st.lists(bodies(), min_size=1, max_size=4), st.data())
async def test_every_write_is_answered_and_reads_go_on(plan: list[tuple[Kind, Any]], data: st.DataObject) -> None:
    bench = Bench()
    for kind, body in plan:
        path = path_of(kind)
        made = await bench.ask("POST", path, body)
        assert made.status < 500 or made.status == 501, (kind.kind, body, made.body)
        content = data.draw(st.sampled_from(["application/merge-patch+json", "application/strategic-merge-patch+json"]))
        patched = await bench.ask("PATCH", f"{path}/x", body, content=content)
        # A strategic patch without a merge key is the real server's 500.
        assert patched.status < 500 or "merge key" in patched.body["message"], (kind.kind, body, patched.body)
        apply = {**(body if isinstance(body, dict) else {}), "apiVersion": kind.api_version, "kind": kind.kind}
        raw = json.dumps(apply).encode()
        applied = await bench.ask("PATCH", f"{path}/x", raw, content="application/apply-patch+yaml", fieldManager="m")
        assert applied.status < 500 or "typed patch" in applied.body["message"], (kind.kind, body, applied.body)
        for name, sub in kind.subresources.items():
            for verb in set(METHODS) & set(sub.verbs) if name != "binding" else ():
                answer = await bench.ask(METHODS[verb], f"{path}/x/{name}", body)
                assert answer.status < 500 or answer.status == 501, (kind.kind, name, body, answer.body)
        if "list" in kind.verbs:
            for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
                assert (await bench.ask("GET", path, accept=accept)).status == 200
        if "delete" in kind.verbs:
            assert (await bench.ask("DELETE", f"{path}/x")).status in (200, 404)


queries = st.dictionaries(
    st.sampled_from(["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch"]),
    st.text(max_size=6) | st.sampled_from(["1", "Exact", "NotOlderThan", "a=b", "metadata.name=x"]),
)


@calm
@given(queries)
async def test_every_query_is_answered(query: dict[str, str]) -> None:
    bench = Bench()
    asked = {**query, "timeoutSeconds": "0"}
    if query.get("resourceVersion", "").isdecimal():
        asked["resourceVersion"] = "1"
    answer = await bench.ask("GET", "/api/v1/pods", **asked)
    assert answer.status in (200, 400, 410, 422), answer.body


@pytest.mark.parametrize(
    "path", ["", "/", "//", "/api", "/api/", "/apis/x", "/apis/apps/v1/x/y/z", "/api/v1/namespaces//pods"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "NONSENSE"])
async def test_every_path_and_method_is_answered(method: str, path: str) -> None:
    answer = await Bench().ask(method, path)
    assert 200 <= answer.status < 500
