"""Schemathesis over the server's own OpenAPI documents, bounded: nothing it makes up is answered with a failure."""

import json
import random
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from policyengine.simulator.api_server.kinds.openapi import document
from policyengine.simulator.api_server.kinds.served import Kinds
from policyengine.simulator.api_server.requests import Request
from tests.simulator.api_server.server_bench import Bench

DOCUMENTS = sorted({(kind.group, kind.version) for kind in Kinds()})
OPERATIONS = 6
EXAMPLES = 4
# Bodies of these are hundreds of types deep; test_fuzz.py makes them from the schema, a thousand times as fast.
DEEP = (
    *("pods", "podtemplates", "replicationcontrollers", "deployments", "daemonsets", "statefulsets", "replicasets"),
    *("jobs", "cronjobs", "customresourcedefinitions", "horizontalpodautoscalers", "resourceslices", "nodes"),
)
calm = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def operations(group: str, version: str) -> list[Any]:
    """Some operations of a document; the same ones every time."""
    schema = schemathesis.openapi.from_dict(document(Kinds(), group, version))
    every = [found.ok() for found in schema.get_all_operations()]
    light = [one for one in every if one.method == "get" or not any(f"/{name}" in one.path for name in DEEP)]
    return random.Random(f"{group}/{version}").sample(light, min(OPERATIONS, len(light)))


def request_of(case: Any) -> Request:
    """A made-up call as the handler takes it."""
    body = case.body
    plain = isinstance(body, dict | list | str | int | float | bool) or body is None
    raw = json.dumps(body).encode() if plain and case.media_type else b""
    query = {name: str(value) for name, value in (case.query or {}).items()}
    headers = {"content-type": case.media_type or "", "user-agent": "schemathesis"}
    return Request(case.method, unquote(case.formatted_path), query, headers, raw)


def cases_of(group: str, version: str) -> list[Any]:
    """Made-up calls of a document."""
    cases: list[Any] = []

    def keep(case: Any) -> None:
        cases.append(case)

    for operation in operations(group, version):
        calm(given(operation.as_strategy())(keep))()
    assert cases
    return cases


async def text_of(body: bytes | AsyncIterator[bytes]) -> bytes:
    """A whole body."""
    return body if isinstance(body, bytes) else b"".join([chunk async for chunk in body])


@pytest.mark.parametrize(("group", "version"), DOCUMENTS, ids=lambda part: part or "core")
async def test_what_a_document_allows_is_answered(group: str, version: str) -> None:
    bench = Bench()
    for case in cases_of(group, version):
        response = await bench.api.handle(request_of(case))
        said = await text_of(response.body)
        # A Binding without a target is the real server's own 500; what runs in no container is a 501.
        fine = response.status < 500 or response.status == 501 or b"typed patch" in said or b"merge key" in said
        assert fine, (case.method, case.path, case.body, said)
        if "json" in response.headers["Content-Type"]:
            json.loads(said)
