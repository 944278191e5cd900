"""Before anything starts: is the server there, and does it let us in?

Asked once, with a list of one node, because that needs both credentials and rights; `/version` answers anybody.
"""

from __future__ import annotations

from policyengine.cluster.kinds import NODES
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.transport import ConnectionFailed


class Unreachable(Exception):
    """Nobody answers, or not as an API server does."""


class AccessDenied(Exception):
    """The server answers, and refuses our credentials or our rights."""


async def check_access(client: Client, url: str, source: str) -> None:
    """Return if nodes may be listed. Raises `Unreachable` or `AccessDenied`, in words for the user."""
    try:
        await client.list_page(NODES, limit=1)
    except ConnectionFailed as error:
        raise Unreachable(f"cannot reach the API server `{url}` ({source}): {error}") from None
    except ApiError as error:
        if error.status == 401:
            raise AccessDenied(
                f"the API server `{url}` refuses the credentials of {source}: {error.message}; log in again"
            ) from None
        if error.status == 403:
            raise AccessDenied(f"the API server `{url}` refuses to list nodes: {error.message}") from None
        answer = error.message.strip().splitlines()
        said = f": {answer[0][:100]}" if answer else ""
        raise Unreachable(f"`{url}` does not answer as an API server{said}") from None
