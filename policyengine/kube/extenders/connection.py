"""One extender's HTTP connection: a POST at a time, bounded in time (`httpTimeout`) and size (`MAX_ANSWER`), over TLS
as its `tlsConfig` has it."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Mapping
from typing import Any

from policyengine.kube.config.configuration import seconds_of
from policyengine.kube.http.transport import ConnectionFailed, TimedOut, Transport

_JSON = {"Content-Type": "application/json"}

MAX_ANSWER = 64 * 1024 * 1024
"""Bytes: 5,000 whole nodes take about 50 MB."""


class ExtenderUnusable(Exception):
    """An extender's TLS files cannot be used; one sentence that says what to do."""


class ExtenderFailed(Exception):
    """An extender did not answer, or not as the protocol has it. `sent`: it may have acted all the same."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class ExtenderConnection:
    """Posts bodies to one extender (an entry of the configuration's `extenders`, completed by defaults)."""

    def __init__(self, given: Mapping[str, Any], transport: Transport | None = None) -> None:
        """Raises `ExtenderUnusable`. Use inside a running event loop; `transport`: another way to it than sockets."""
        from policyengine.kube.http.aiohttp_transport import AiohttpTransport

        self._prefix = given["urlPrefix"].rstrip("/")
        if given["enableHTTPS"] and self._prefix.startswith("http://"):
            self._prefix = "https://" + self._prefix.removeprefix("http://")
        self._timeout = seconds_of(given["httpTimeout"])
        context = _ssl_context(given["tlsConfig"], self._prefix) if self._prefix.startswith("https://") else None
        self._transport = transport or AiohttpTransport(self._prefix, ssl_context=context, max_answer=MAX_ANSWER)

    async def post(self, verb: str, body: bytes) -> bytes:
        """The body of what it answers at the path `verb` below its prefix. Raises `ExtenderFailed`."""
        path = f"/{verb.lstrip('/')}"
        url = self._prefix + path
        try:
            response = await self._transport.request("POST", path, body=body, headers=_JSON, timeout=self._timeout)
            try:
                answer = await response.read()
            finally:
                await response.close()
        except TimedOut:
            raise ExtenderFailed(f"`{url}` did not answer within {self._timeout:g} s") from None
        except ConnectionFailed as error:
            what = "failed" if error.sent else "cannot be reached"
            raise ExtenderFailed(f"`{url}` {what}: {error}", sent=error.sent) from None
        if response.status != 200:
            raise ExtenderFailed(f"`{url}` answers with HTTP status {response.status}")
        return answer

    async def close(self) -> None:
        """Close its connections."""
        await self._transport.close()


def _ssl_context(given: Mapping[str, Any], prefix: str) -> ssl.SSLContext:
    try:
        ca = base64.b64decode(given["caData"], validate=True).decode() if given["caData"] else None
        context = ssl.create_default_context(cafile=given["caFile"] or None, cadata=ca)
        if given["insecure"]:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if given["certFile"]:
            context.load_cert_chain(given["certFile"], given["keyFile"] or None)
        elif given["certData"]:
            _load_data(context, given)
    except (OSError, ssl.SSLError, ValueError) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise ExtenderUnusable(f"extender `{prefix}`: its tlsConfig cannot be used: {text.lower()}") from None
    return context


def _load_data(context: ssl.SSLContext, given: Mapping[str, Any]) -> None:
    """A certificate given in the configuration: `ssl` reads files only, so it is one for a moment."""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(base64.b64decode(given["certData"], validate=True) + b"\n")
        file.write(base64.b64decode(given["keyData"], validate=True))
        file.flush()
        context.load_cert_chain(file.name)
