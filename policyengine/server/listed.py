"""Every object of a kind, as the API server has them now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from policyengine.cluster.kinds import Kind
from policyengine.kube.http.client import Client


async def listed(client: Client, resource: Kind[Any]) -> AsyncIterator[bytes]:
    """Each object as JSON, read page by page. Raises `ApiError`, `ConnectionFailed`."""
    token = ""
    while True:
        page = await client.list_page(resource, continue_=token)
        for raw in page.items or ():
            yield bytes(raw)
        token = page.metadata.continue_
        if not token:
            return
