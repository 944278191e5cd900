"""The pages of the scheduler that runs in a cluster: found by its Lease, asked through the API server.

Rules:
1. Only the Leases of one namespace are looked at, kube-system unless another is named: in their own, tenants can write
   Leases that say anything.
2. Who leads writes into its Lease where its pages are: `NAMESPACE/SCHEME:POD:PORT`, which the API server's pod proxy
   reaches, or, where it is no pod, an http URL on loopback. Whatever else stands there is not asked.
3. The API server takes a caller's credentials away before it passes a request on (`withAuthentication`,
   k8s.io/apiserver, v1.36), and a person's own token has no business in a pod. So the caller has the API server make a
   token of the account `LEASE-reader` beside the pod: for ten minutes, and for an audience that no API server has.
4. Every page says which process tells it, and whether that leads. One that is not the Lease's holder, or does not lead,
   is not believed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from policyengine.kube.config.access import AccessDenied, Unreachable
from policyengine.kube.config.configuration import is_loopback
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed, object_of
from policyengine.kube.leader import LABEL, LABELLED, PAGES

AUDIENCE: Final = "policyengine"
"""Of the tokens that the pages take in their own header."""
TOKEN_HEADER: Final = "Policyengine-Authorization"
"""`Bearer TOKEN`, as in `Authorization`."""
SERVED_BY: Final = "servedBy"
"""The key under which a page says `{identity, leads}`."""
OFF: Final = ""
"""What a Lease says where there are no pages, or none that others reach."""
TOKEN_SECONDS: Final = 600
"""The least that the API server grants (ValidateTokenRequest)."""
TIMEOUT: Final = 10.0
SKEW: Final = 60.0
"""Seconds by which the clocks of two machines may differ before a Lease counts as expired."""
_IN_POD = re.compile(r"([a-z0-9][-a-z0-9]{0,62})/(https?):([a-z0-9][-a-z0-9.]{0,252}):([0-9]{1,5})")
_READER_ROLE = "have the Role `policyengine-user` bound to you"


class _About(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    annotations: dict[str, str] | None = None


class _Spec(
    msgspec.Struct,
    frozen=True,
    rename={"holder": "holderIdentity", "seconds": "leaseDurationSeconds", "renewed": "renewTime"},
):
    holder: str | None = None
    seconds: int | None = None
    renewed: datetime | None = None


class _Lease(msgspec.Struct):
    metadata: _About
    spec: _Spec = _Spec()

    def running(self) -> RunningScheduler:
        pages = (self.metadata.annotations or {}).get(PAGES, OFF)
        return RunningScheduler(self.metadata.namespace, self.metadata.name, self.spec.holder or "", pages)

    def expires(self) -> float:
        """Epoch seconds; 0 for a Lease that was never renewed."""
        return self.spec.renewed.timestamp() + (self.spec.seconds or 0) if self.spec.renewed else 0.0


class _Leases(msgspec.Struct):
    items: list[_Lease]


class NoScheduler(Unreachable):
    """No Lease says that a scheduler runs in the cluster."""


class ServerSilent(Unreachable):
    """The API server itself does not answer."""


class UnknownPod(LookupError):
    """The scheduler that runs knows no such pod."""


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    """One that holds a Lease."""

    namespace: str
    lease: str
    holder: str
    pages: str
    """As the Lease has it; `OFF` for none."""

    def __str__(self) -> str:
        return f"the scheduler of lease `{self.namespace}/{self.lease}`"


def announced(url: str, environment: Mapping[str, str]) -> str:
    """What a Lease says of pages at this URL. A pod knows by `POD_NAME` and `POD_NAMESPACE` what it is called."""
    parts = urlsplit(url)
    if is_loopback(parts.hostname or ""):
        return url if parts.scheme == "http" else OFF
    pod, namespace = environment.get("POD_NAME", ""), environment.get("POD_NAMESPACE", "")
    return f"{namespace}/{parts.scheme}:{pod}:{parts.port}" if pod and namespace else OFF


async def find(client: Client, now: float, namespace: str) -> list[RunningScheduler]:
    """Every scheduler that holds a Lease of that namespace at `now` (epoch seconds), by name.

    Raises:
        NoScheduler: there is none.
        AccessDenied: Leases may not be listed.
        ServerSilent: the API server does not answer.
        Unreachable: it answers as none does, or every Lease has run out.
    """
    leases = [one for one in await _leases(client, namespace) if one.spec.holder]
    found = [one.running() for one in leases if now <= one.expires() + SKEW]
    if found:
        return sorted(found, key=str)
    if leases:
        last = max(leases, key=_Lease.expires)
        ago = f"ran out {now - last.expires():.0f} s ago" if last.spec.renewed else "was never renewed"
        raise Unreachable(f"no scheduler runs: the lease of `{last.spec.holder}` {ago}; is its pod up?")
    raise NoScheduler(
        f"no scheduler runs: no Lease in namespace `{namespace}` names one; name another: --scheduler-namespace"
    )


async def ask(client: Client, scheduler: RunningScheduler, path: str) -> dict[str, Any]:
    """A page of it, such as `/debug/queue`.

    Raises:
        UnknownPod: it knows no such pod.
        AccessDenied: its pages are off, or refuse us, or the way to them is not ours to go.
        Unreachable: it does not answer, or no longer leads.
    """
    inside = _IN_POD.fullmatch(scheduler.pages)
    try:
        if inside is not None:
            page = await _ask_pod(client, scheduler, *inside.groups(), path=path)
        elif _is_loopback_url(scheduler.pages):
            page = await _ask_here(scheduler.pages, path)
        else:
            raise AccessDenied(
                f"{scheduler} shows no pages: set `endpoints.debug: true` and an `endpoints.address` that others reach"
            )
    except ConnectionFailed as error:
        raise Unreachable(f"{scheduler} does not answer: {error}") from None
    except ApiError as error:
        raise refused(error, str(scheduler)) from None
    believe(page, str(scheduler), scheduler.holder)
    return page


def believe(page: Mapping[str, Any], who: str, holder: str = "") -> None:
    """Return if a page is told by the process that leads: by `holder`, where there is a name. Raises `Unreachable`."""
    told = page.get(SERVED_BY)
    if not isinstance(told, Mapping):
        raise Unreachable(f"{who} does not answer as policyengine's pages do")
    if not told.get("leads") or holder not in ("", told.get("identity")):
        raise Unreachable(f"{who} has just changed: `{told.get('identity')}` answers and does not lead; ask again")


def refused(error: ApiError, who: str) -> Exception:
    """What an answer that is none means, in words for a user. Only the API server's own refusals have a reason."""
    if error.reason:
        if error.status == 403:
            return AccessDenied(f"{who} cannot be reached by you: {error.message}; {_READER_ROLE}")
        return Unreachable(f"{who} cannot be reached: {error.message}")
    if error.status == 404 and error.message.startswith("no pod "):
        return UnknownPod(f"{who} knows {error.message}")
    if error.status == 401:
        return AccessDenied(f"{who} does not know us ({error.message}); its pages want `authentication: TokenReview`")
    if error.status == 403:
        return AccessDenied(f"{who} refuses its page: {error.message}; give that account the ClusterRole of its pages")
    if error.status == 404:
        return AccessDenied(f"{who} has no such page: it is older, or `endpoints.debug` is off")
    return Unreachable(f"{who} does not answer as policyengine's pages do (status {error.status}): {error.message}")


async def _ask_pod(
    client: Client, scheduler: RunningScheduler, namespace: str, scheme: str, pod: str, port: str, *, path: str
) -> dict[str, Any]:
    headers = {}
    if scheme == "https":  # in the clear nobody is asked who calls
        headers = {TOKEN_HEADER: f"Bearer {await _token(client, namespace, f'{scheduler.lease}-reader')}"}
    at = f"/api/v1/namespaces/{namespace}/pods/{scheme}:{pod}:{port}/proxy{path}"
    return object_of(await client.call("GET", at, seconds=TIMEOUT, headers=headers))


async def _ask_here(url: str, path: str) -> dict[str, Any]:
    from policyengine.kube.http.aiohttp_transport import AiohttpTransport  # a seventh of a second

    client = Client(AiohttpTransport(url), TIMEOUT)
    try:
        return object_of(await client.call("GET", path))
    finally:
        await client.close()


async def _token(client: Client, namespace: str, account: str) -> str:
    """A short-lived token of the account, which only the pages believe."""
    spec = {"audiences": [AUDIENCE], "expirationSeconds": TOKEN_SECONDS}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    at = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    made = object_of(await client.call("POST", at, body, seconds=TIMEOUT))
    token: str = (made.get("status") or {}).get("token") or ""
    return token


async def _leases(client: Client, namespace: str) -> list[_Lease]:
    """Ours, of that namespace."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    try:
        body = await client.call("GET", path, query={"labelSelector": f"{LABEL}={LABELLED}"}, seconds=TIMEOUT)
        return msgspec.json.decode(body, type=_Leases).items
    except ConnectionFailed as error:
        raise ServerSilent(f"the API server does not answer: {error}") from None
    except ApiError as error:
        told = f"the scheduler's Lease cannot be looked up: {error.message}"
        if error.status == 401:
            raise AccessDenied(f"the API server refuses the credentials: {error.message}; log in again") from None
        if error.status == 403:
            raise AccessDenied(f"{told}; {_READER_ROLE}") from None
        raise Unreachable(told) from None
    except msgspec.MsgspecError as error:
        raise Unreachable(f"the API server lists no Leases: {error}") from None


def _is_loopback_url(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme == "http" and is_loopback(parts.hostname or "") and quote(text, safe=":/[]") == text
