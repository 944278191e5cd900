"""`policyengine explain` where a scheduler runs: what that one knows of a pod, or of all that wait."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from policyengine import regular_file
from policyengine.commands import running_scheduler
from policyengine.commands.kubectl_tables import show_queue
from policyengine.commands.options import UnusableInput
from policyengine.control_characters import escaped, escaped_values
from policyengine.kube.config import credentials
from policyengine.kube.config.credentials import AccessDenied, Unreachable
from policyengine.kube.http.client import ConnectionFailed, Transport
from policyengine.kube.scheduler_pages import UnknownPod, believe

TIMEOUT: Final = 10.0
WIDE: Final = 400
"""Columns where the output is no terminal: no line is folded."""
_SHOWN: Final = 12
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """An address of a scheduler's endpoints, and what is shown and believed there."""

    address: str
    kubeconfig: Path | None
    """Whose credentials are sent, to https only."""
    authority: Path | None
    """Who signed their certificate; None: whom this machine trusts."""
    server_name: str | None
    """The name in their certificate; None: the address's."""


def from_running(pod: str | None, kubeconfig: Path | None, context: str | None, output: str) -> bool:
    """Print what the scheduler that runs in the kubeconfig's cluster knows of a pod, or of all that wait.

    False where it cannot be asked, or does not serve the pod: the cluster's objects are to answer then, and a line on
    standard error says why. Raises `ConfigError`, and `UnusableInput` for what is no pod's name.
    """
    server = credentials.load(kubeconfig, context)
    try:
        if pod is None:
            show_queue(running_scheduler.pages(server, "/debug/queue"), None, output)
            return True
        timeline = running_scheduler.timeline(server, *named(pod, server.namespace or "default"))
    except (AccessDenied, Unreachable, UnknownPod) as error:
        click.echo(f"note: {escaped(str(error))}; what follows is worked out from the cluster's objects", err=True)
        return False
    if timeline["policy"] is None:
        return False
    _print(timeline, output)
    return True


def explain_live(pod: str, endpoints: Endpoints, output: str) -> None:
    """Ask at an address, and print.

    Raises:
        Unreachable: nobody answers at the address, or not as a scheduler that leads does.
        AccessDenied: the credentials are refused.
        UnusableInput: the scheduler knows no such pod, or what was given cannot be used.
    """
    namespace, name = named(pod, "")
    connect = _connection(endpoints)
    _print(asyncio.run(_fetch(connect, endpoints.address, f"/debug/pods/{namespace}/{name}", pod)), output)


def named(pod: str, namespace: str) -> tuple[str, str]:
    """`NAMESPACE/NAME`, or `NAME` in the namespace given, if there is one. Raises `UnusableInput`."""
    before, slash, name = pod.rpartition("/")
    found = (before if slash else namespace), name
    if not all(map(_NAME.fullmatch, found)):
        raise UnusableInput(f"`{pod}` is not of the form {'[NAMESPACE/]' if namespace else 'NAMESPACE/'}NAME")
    return found


def _print(timeline: Mapping[str, Any], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(timeline, indent=2))
    else:
        show(timeline)


def _connection(endpoints: Endpoints) -> Callable[[], Transport]:
    """What makes the transport, inside an event loop. Credentials go nowhere in the clear."""
    address, kubeconfig = endpoints.address, endpoints.kubeconfig
    scheme = urlsplit(address).scheme
    if scheme not in ("http", "https") or not urlsplit(address).netloc:
        raise UnusableInput(f"`{address}` is no address such as http://127.0.0.1:10259")
    if kubeconfig is not None and scheme == "http":
        raise UnusableInput(
            f"credentials of a kubeconfig are sent to an https address only, and `{address}` is none; give --address "
            "https://…, or leave out --kubeconfig"
        )
    authorize = credentials.load(kubeconfig, None).authorize if kubeconfig is not None else None
    context = _context(endpoints.authority) if scheme == "https" else None

    def connect() -> Transport:
        from policyengine.kube.http.aiohttp_transport import AiohttpTransport

        return AiohttpTransport(
            address, ssl_context=context, server_hostname=endpoints.server_name, authorize=authorize
        )

    return connect


def _context(authority: Path | None) -> ssl.SSLContext:
    try:
        if authority is not None:
            regular_file.read(authority, credentials.LARGEST_PEM)
        return ssl.create_default_context(cafile=authority)
    except OSError as error:  # SSLError is one
        raise UnusableInput(f"cannot use the certificates in `{authority}`: {regular_file.reason(error)}") from None


async def _fetch(connect: Callable[[], Transport], address: str, path: str, pod: str) -> dict[str, Any]:
    transport = connect()
    try:
        response = await transport.request("GET", path, timeout=TIMEOUT)
        status, body = response.status, await response.read()
        await response.close()
    except ConnectionFailed as error:
        raise Unreachable(
            f"no scheduler answers at `{address}`: {error}; forward its port, or give --address"
        ) from None
    finally:
        await transport.close()
    return _answer(status, body, address, pod)


def _answer(status: int, body: bytes, address: str, pod: str) -> dict[str, Any]:
    if status in (401, 403):
        raise AccessDenied(f"`{address}` refuses the credentials ({status}); give --kubeconfig of one who may read it")
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if status == 404 and body.startswith(b"no pod "):
        raise UnusableInput(f"the scheduler at `{address}` knows no pod `{pod}`")
    if status != 200 or not isinstance(found, dict) or "story" not in found:
        raise Unreachable(f"`{address}` does not answer as policyengine's endpoints do (status {status})")
    believe(found, f"the scheduler at `{address}`")
    return found


def show(timeline: Mapping[str, Any], console: Console | None = None) -> None:
    """Print a timeline; colours only on a terminal, as rich decides."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    timeline = escaped_values(timeline)
    console.print(_headline(timeline), soft_wrap=True)
    if timeline["message"]:
        console.print(Text(f"  {timeline['message']}", "dim"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    first: datetime | None = None
    for line in timeline["story"]:
        at = datetime.fromisoformat(line["at"])
        first = first or at
        after = f"+{(at - first).total_seconds():.3f}s"
        table.add_row(
            Text(f"  {line['at']}", "dim"), Text(after, "dim"), Text(line["what"], "bold"), Text(_details(line))
        )
    console.print(table)


def _headline(timeline: Mapping[str, Any]) -> Text:
    line = Text.assemble((timeline["pod"], "bold"), "  ", (timeline["place"], "yellow"))
    if timeline["node"]:
        line.append(f" on {timeline['node']}")
    if timeline["position"] is not None:
        line.append(f", position {timeline['position'] + 1} of {timeline['queue'].get('active', 0)}")
    if timeline["nominatedNode"]:
        line.append(f", nominated to {timeline['nominatedNode']}")
    policy = timeline["policy"]
    if policy is None:
        return line.append("; no policy serves it")
    tried = f"{timeline['attempts']} attempt{'s' * (timeline['attempts'] != 1)}"
    return line.append(f"; policy {policy['name']} {policy['hash'][:_SHOWN]}, {tried}")


def _details(line: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in line.items() if key not in ("at", "what") and value not in ("", [], None)}
    return ", ".join(f"{key} {_value(key, value)}" for key, value in shown.items())


def _value(key: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)[:_SHOWN] if key == "policy hash" else str(value)
