"""One extender's HTTP connection: a POST at a time, bounded in time (`httpTimeout`) and size (`MAX_ANSWER`), over TLS
as its `tlsConfig` has it."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from policyengine.kube.config.configuration import seconds_of

if TYPE_CHECKING:
    import aiohttp

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

    def __init__(self, given: Mapping[str, Any], session: aiohttp.ClientSession) -> None:
        """Raises `ExtenderUnusable`."""
        self._prefix = given["urlPrefix"].rstrip("/")
        if given["enableHTTPS"] and self._prefix.startswith("http://"):
            self._prefix = "https://" + self._prefix.removeprefix("http://")
        self._session = session
        self._timeout = seconds_of(given["httpTimeout"])
        self._ssl = _ssl_context(given["tlsConfig"], self._prefix) if self._prefix.startswith("https://") else True

    async def post(self, verb: str, body: bytes) -> bytes:
        """The body of what it answers at the path `verb` below its prefix. Raises `ExtenderFailed`."""
        import aiohttp  # a tenth of the start of a scheduler, which mostly has no extender

        url = f"{self._prefix}/{verb.lstrip('/')}"
        try:
            async with self._session.post(
                url,
                data=body,
                headers={"Content-Type": "application/json"},
                ssl=self._ssl,
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                allow_redirects=False,
            ) as response:
                answer = await _read(response)
                if response.status != 200:
                    raise ExtenderFailed(f"`{url}` answers with HTTP status {response.status}")
                return answer
        except TimeoutError:
            raise ExtenderFailed(f"`{url}` did not answer within {self._timeout:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise ExtenderFailed(f"`{url}` cannot be reached: {error.os_error.strerror or error}", sent=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise ExtenderFailed(f"`{url}` failed: {error or type(error).__name__}") from None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER:
            response.close()
            raise ExtenderFailed(f"its answer is longer than {MAX_ANSWER} bytes")
    return b"".join(parts)


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
