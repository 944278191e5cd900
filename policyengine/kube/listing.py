"""The objects of a cluster as they are now, listed once, for those who ask and do not watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from policyengine.cluster.kinds import FINISHED_PODS, NODES, PODS, WATCHED, Kind
from policyengine.cluster.objects import ObjectError, decode
from policyengine.framework.profile import Profile
from policyengine.kube.config.access import AccessDenied
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.policies.scheduling_policy import FORMS, selector
from policyengine.kube.policies.sources import DEFAULT_NAMESPACE, PolicySource
from policyengine.kube.watching.informers import ALWAYS, kinds_read

AT_ONCE: Final = 4
"""Kinds that are listed at the same time."""
NAMESPACES: Final = (DEFAULT_NAMESPACE, "policyengine-policies")
"""Where policies are looked for by somebody who may not list them everywhere: `run`'s own, and that of `deploy/`."""


class Listed(NamedTuple):
    """What there is."""

    objects: list[tuple[str, Any]]
    """(kind, decoded object)."""
    left_out: list[str]
    """What could not be had, and why: a sentence each."""


async def list_cluster(client: Client, profiles: Iterable[Profile]) -> Listed:
    """Everything that these profiles read.

    A kind that the server does not serve has no objects; one that may not be listed, or an object that cannot be read,
    is left out.

    Raises:
        AccessDenied: nodes or pods may not be listed.
        ApiError, ConnectionFailed: the server fails, or does not answer.
    """
    kinds = set[str]().union(*map(kinds_read, profiles))
    resources = list(dict.fromkeys([*ALWAYS, *(WATCHED[kind] for kind in sorted(kinds))]))
    found = Listed([], [])
    turns = asyncio.Semaphore(AT_ONCE)

    async def list_kind(kind: Kind[Any]) -> None:
        async with turns:
            try:
                async for one in _decoded(client, kind, found.left_out):
                    found.objects.append((PODS.kind if kind is FINISHED_PODS else kind.kind, one))
            except ApiError as error:
                _leave_out(kind, error, found.left_out)

    await asyncio.gather(*map(list_kind, resources))
    return found


async def list_policies(client: Client) -> tuple[list[PolicySource], list[str]]:
    """(objects that carry policies, what could not be had, and why). Raises `ApiError`, `ConnectionFailed`."""
    left_out: list[str] = []
    found: list[PolicySource] = []
    for form in FORMS:
        try:
            found += [form(one) for one in await _selected(client, form.KIND, selector(form), left_out)]
        except ApiError as error:
            _leave_out(form.KIND, error, left_out)
    return found, left_out


async def _selected(client: Client, kind: Kind[Any], labels: str, left_out: list[str]) -> list[Any]:
    """Those of all namespaces; where that is refused, those of `NAMESPACES`."""
    try:
        return [one async for one in _decoded(client, kind, left_out, "", labels)]
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
    return [one for where in NAMESPACES async for one in _decoded(client, kind, left_out, where, labels)]


async def _decoded(
    client: Client, kind: Kind[Any], left_out: list[str], namespace: str = "", labels: str = ""
) -> AsyncIterator[Any]:
    """The objects of a kind, page by page. Raises `ApiError`, `ConnectionFailed`."""
    async for raw in client.list_all(kind, namespace, labels):
        try:
            yield decode(client.served(kind).type, raw)
        except ObjectError as error:
            left_out.append(f"{error}; it is left out")


def _leave_out(kind: Kind[Any], error: ApiError, left_out: list[str]) -> None:
    """Go on without the kind, if that can be. Raises `AccessDenied`, `ApiError`."""
    if error.status == HTTPStatus.FORBIDDEN:
        if kind in (NODES, PODS):
            raise AccessDenied(
                f"the API server refuses to list {kind.plural}: {error.message}; ask for the right to list them in all "
                "namespaces, or have somebody who may print a file for --cluster"
            ) from None
        left_out.append(f"{kind.plural} may not be listed, and are left out: {error.message}")
    elif error.status != HTTPStatus.NOT_FOUND or kind in (NODES, PODS):
        raise error
