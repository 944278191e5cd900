"""`policyengine explain` where a scheduler runs: what that one knows of a pod, or of all that wait."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from policyengine import regular_file
from policyengine.commands.console import standard_output
from policyengine.commands.explaining import running_scheduler
from policyengine.commands.explaining.as_text import show_why
from policyengine.commands.kubectl_tables import once
from policyengine.commands.kubectl_tables import show as show_pages
from policyengine.commands.options import UnusableInput
from policyengine.control_characters import escaped, escaped_values
from policyengine.kube.config import credentials
from policyengine.kube.config.access import AccessDenied, Unreachable
from policyengine.kube.config.credentials import Server
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed, Transport, object_of
from policyengine.kube.scheduler_pages import NoScheduler, ServerSilent, UnknownPod, believe

TIMEOUT: Final = 10.0
_SHOWN: Final = 12
_WAITS: Final = ("unschedulable", "backoff", "held", "gated")
"""Places of pods that a change may help."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def explain_running(
    name: str | None, kubeconfig: Path | None, context: str | None, leases: str, output: str
) -> list[str] | None:
    """Print what the schedulers that run in a kubeconfig's cluster say of a pod, or of all that wait; of one that they
    refuse also what would help, worked out from the cluster's objects.

    None where they have been asked; else, where none runs or it cannot be asked, what is to be said of that.

    Raises:
        ConfigError, UnusableInput: the kubeconfig cannot be used; what is given is no pod's name.
        ServerSilent: the API server does not answer, and need not be asked for its objects.
    """
    server = credentials.load(kubeconfig, context)
    try:
        if name is None:
            pages = running_scheduler.pages(server, leases, "/debug/queue")
        else:
            page = running_scheduler.timeline(server, leases, *named(name, server.namespace or "default"))
    except NoScheduler:
        return []
    except ServerSilent:
        raise
    except (AccessDenied, Unreachable, UnknownPod) as error:
        return [f"{escaped(str(error))}; what follows is worked out from the cluster's objects"]
    if name is not None:
        _show_with_help(page, server, output)
    elif output == "json":
        click.echo(json.dumps([{"pod": key, "running": one} for key, one in once(pages).items()], indent=2))
    else:
        show_pages("queue", pages, output)
    return None


def _show_with_help(page: Mapping[str, Any], server: Server, output: str) -> None:
    entry = _forecast(page, server) if page["place"] in _WAITS else {}
    if output == "json":
        click.echo(json.dumps([{"pod": page["pod"], **entry, "running": page}], indent=2))
        return
    show(page)
    if page["place"] in _WAITS and not entry and page["policy"]:
        click.echo(
            f"note: what would help is worked out with --policy, by the text of `{page['policy']['name']}`", err=True
        )
    if entry:
        from policyengine.commands.explaining.as_text import show_attempt

        show_attempt({**escaped_values(entry), "message": ""}, standard_output(None))


def _forecast(page: Mapping[str, Any], server: Server) -> Mapping[str, Any]:
    """The pod's entry of a forecast by the policy that refused it; empty where the cluster's objects have no such
    policy, as where the scheduler was given a file, or where they may not be listed."""
    from policyengine.clock import SystemClock
    from policyengine.commands.explaining.explained_cluster import from_server
    from policyengine.diagnosis.explain import explain_forecast

    try:
        cluster = from_server(server, None)
    except (AccessDenied, Unreachable):
        return {}
    hashes = {profile.policy_hash for profile in cluster.profiles if profile.scheduler_name == page["schedulerName"]}
    if page["policy"]["hash"] not in hashes or page["pod"] not in cluster.waiting:
        return {}
    (entry,) = explain_forecast(cluster.objects, cluster.profiles, SystemClock().now(), page["pod"])
    return entry


def explain_live(
    pod: str, address: str, kubeconfig: Path | None, authority: Path | None, server_name: str | None, output: str
) -> None:
    """Ask at the address of a scheduler's endpoints, and print.

    Arguments:
        kubeconfig: whose credentials are sent, to https only.
        authority: who signed their certificate; None: whom this machine trusts.
        server_name: the name in their certificate; None: the address's.

    Raises:
        Unreachable: nobody answers at the address, or not as a scheduler that leads does.
        AccessDenied: the credentials are refused.
        UnusableInput: the scheduler knows no such pod, or what was given cannot be used.
    """
    namespace, name = named(pod, "")
    connect = _connection(address, kubeconfig, authority, server_name)
    timeline = asyncio.run(_fetch(connect, address, f"/debug/pods/{namespace}/{name}", pod))
    if output == "json":
        click.echo(json.dumps(timeline, indent=2))
    else:
        show(timeline)


def named(pod: str, namespace: str) -> tuple[str, str]:
    """`NAMESPACE/NAME`, or `NAME` in the namespace given, if there is one. Raises `UnusableInput`."""
    before, slash, name = pod.rpartition("/")
    found = (before if slash else namespace), name
    if not all(map(_NAME.fullmatch, found)):
        raise UnusableInput(f"`{pod}` is not of the form {'[NAMESPACE/]' if namespace else 'NAMESPACE/'}NAME")
    return found


def _connection(
    address: str, kubeconfig: Path | None, authority: Path | None, server_name: str | None
) -> Callable[[], Transport]:
    """What makes the transport, inside an event loop. Credentials go nowhere in the clear."""
    scheme = urlsplit(address).scheme
    if scheme not in ("http", "https") or not urlsplit(address).netloc:
        raise UnusableInput(f"`{address}` is no address such as http://127.0.0.1:10259")
    if kubeconfig is not None and scheme == "http":
        raise UnusableInput(
            f"credentials of a kubeconfig are sent to an https address only, and `{address}` is none; give --address "
            "https://…, or leave out --kubeconfig"
        )
    authorize = credentials.load(kubeconfig, None).authorize if kubeconfig is not None else None
    context = None
    if scheme == "https":
        try:
            if authority is not None:
                regular_file.read(authority, credentials.LARGEST_PEM)
            context = ssl.create_default_context(cafile=authority)
        except OSError as error:  # SSLError is one
            raise UnusableInput(f"cannot use the certificates in `{authority}`: {regular_file.reason(error)}") from None
    from policyengine.kube.http.aiohttp_transport import AiohttpTransport

    return lambda: AiohttpTransport(address, ssl_context=context, server_hostname=server_name, authorize=authorize)


async def _fetch(connect: Callable[[], Transport], address: str, path: str, pod: str) -> dict[str, Any]:
    client = Client(connect(), TIMEOUT)
    try:
        found = object_of(await client.call("GET", path))
    except ConnectionFailed as error:
        raise Unreachable(
            f"no scheduler answers at `{address}`: {error}; forward its port, or give --address"
        ) from None
    except ApiError as error:
        if error.status in (401, 403):
            told = f"`{address}` refuses the credentials ({error.status}); give --kubeconfig of one who may read it"
            raise AccessDenied(told) from None
        if error.status == 404 and error.message.startswith("no pod "):
            raise UnusableInput(f"the scheduler at `{address}` knows no pod `{pod}`") from None
        found = {}
        status = error.status
    else:
        status = 200
    finally:
        await client.close()
    if "story" not in found:
        raise Unreachable(f"`{address}` does not answer as policyengine's endpoints do (status {status})")
    believe(found, f"the scheduler at `{address}`")
    return found


def show(timeline: Mapping[str, Any], console: Console | None = None) -> None:
    """Print a timeline; colours only on a terminal, as rich decides."""
    console = console or standard_output()
    timeline = escaped_values(timeline)
    console.print(_headline(timeline), soft_wrap=True)
    if timeline["message"]:
        console.print(Text(f"  {timeline['message']}", "dim"), soft_wrap=True)
    if timeline.get("why"):
        show_why(timeline["why"], console)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    first: datetime | None = None
    for line in timeline["story"]:
        at = datetime.fromisoformat(line["at"])
        first = first or at
        after = f"+{(at - first).total_seconds():.3f}s"
        table.add_row(
            Text(f"  {line['at']}", "dim"), Text(after, "dim"), Text(line["what"], "bold"), Text(_details(line))
        )
    if timeline["story"]:
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
        served = ", ".join(timeline["served"]) or "no scheduler name at all"
        return line.append(f"; its schedulerName is `{timeline['schedulerName']}`, and this scheduler serves {served}")
    tried = f"{timeline['attempts']} attempt{'s' * (timeline['attempts'] != 1)}"
    return line.append(f"; policy {policy['name']} {policy['hash'][:_SHOWN]}, {tried}")


def _details(line: Mapping[str, Any]) -> str:
    told = []
    for key, value in line.items():
        if key not in ("at", "what") and value not in ("", [], None):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            told.append(f"{key} {text[:_SHOWN] if key == 'policy hash' else text}")
    return ", ".join(told)
