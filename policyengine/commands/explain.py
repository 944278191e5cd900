"""`policyengine explain`: where each waiting pod of a cluster dump would go, and why not elsewhere, offline; or, with
`--live`, what has happened to one pod in the scheduler that runs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyengine.commands.options import Moment, UnusableInput, cannot_read, file_option, output_option, param_option
from policyengine.commands.policies import load_profiles
from policyengine.regular_file import read, read_stream

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile

_LARGEST = 1 << 30
"""Bytes of a dump: 100,000 pods."""
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
"""Of characters beyond U+FFFF, which JSON writes as two escapes."""


@click.command()
@file_option(
    "--cluster",
    "cluster_path",
    help="`kubectl get nodes,pods,… -A -o json`, or an object with nodes, pods, pending, …; - reads standard input.",
)
@file_option(
    "--policy",
    "policy_path",
    help="Policy that judges; default: the in-tree plugins as kube-scheduler runs them.",
)
@param_option
@click.option("--pod", metavar="NS/NAME", help="Only this pending pod.")
@click.option(
    "--now", type=Moment(), metavar="TIME", help="What `now` is, such as 2026-01-05T18:30:00+01:00; default: the clock."
)
@click.option("--live", metavar="NS/NAME", help="Instead: the story of this pod, from the scheduler that runs.")
@click.option(
    "--address",
    default="http://127.0.0.1:10259",
    show_default=True,
    metavar="URL",
    help="With --live: where that scheduler's endpoints are.",
)
@file_option("--kubeconfig", help="With --live: whose credentials are sent to an https address.")
@file_option(
    "--certificate-authority",
    "authority",
    help="With --live: who signed the certificate of an https address.",
)
@click.option("--tls-server-name", "server_name", metavar="NAME", help="With --live: the name in that certificate.")
@output_option("text", "json")
def explain(
    cluster_path: Path | None,
    policy_path: Path | None,
    params: dict[str, str],
    pod: str | None,
    now: float | None,
    live: str | None,
    address: str,
    kubeconfig: Path | None,
    authority: Path | None,
    server_name: str | None,
    output: str,
) -> None:
    """Judge every pending pod against the cluster in FILE, each alone.

    Shows the node that would be chosen, each plugin's share of the best scores, and the other nodes by what
    speaks against them. Nothing is placed and no server is asked.

    With --live: one pod's story from the scheduler that runs. Endpoints listen on loopback; reach those of
    a scheduler in a cluster by `kubectl -n kube-system port-forward deploy/policyengine 10259`.
    """
    if (live is None) == (cluster_path is None):
        raise click.UsageError("give either --cluster FILE or --live NS/NAME")
    if live is not None:
        from policyengine.commands.explain_live import Endpoints, explain_live

        if policy_path is not None or params or pod is not None or now is not None:
            raise click.UsageError(
                "--live tells what has happened; --policy, --param, --pod and --now are for --cluster"
            )
        explain_live(live, Endpoints(address, kubeconfig, authority, server_name), output)
        return
    assert cluster_path is not None
    from policyengine.clock import SystemClock
    from policyengine.cluster.objects import ObjectError
    from policyengine.diagnosis.dump import ClusterShapeError
    from policyengine.diagnosis.explain import explain as explain_cluster

    cluster = read_json(cluster_path)
    profiles = _profiles(policy_path, params)
    moment = SystemClock().now() if now is None else now
    try:
        entries = explain_cluster(cluster, profiles, pod, suggestions=True, now=moment)
    except KeyError:
        raise UnusableInput(f"no pod `{pod}` waits in `{cluster_path}`") from None
    except (ClusterShapeError, ObjectError) as error:
        raise UnusableInput(f"`{cluster_path}`: {error}") from None
    if output == "json":
        click.echo(json.dumps(entries, indent=2))
    else:
        from policyengine.commands.explain_table import show

        show(entries)


def read_json(path: Path) -> Any:
    """The file's content; a click error with exit code 2 where it cannot be read as JSON."""
    try:
        raw = read_stream(sys.stdin.buffer, _LARGEST) if str(path) == "-" else read(path, _LARGEST)
    except OSError as error:
        raise cannot_read(path, error) from None
    try:
        found = json.loads(raw.decode("utf-8"), parse_int=_int64)
        if _HALVES.search(raw):
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except UnicodeDecodeError as error:
        raise UnusableInput(f"`{path}` is not UTF-8: byte {error.start} is `0x{raw[error.start]:02x}`") from None
    except json.JSONDecodeError as error:
        raise UnusableInput(
            f"`{path}` is not JSON: line {error.lineno}, column {error.colno}: {error.msg.lower()}"
        ) from None
    except UnicodeEncodeError:
        raise UnusableInput(
            f"`{path}` has half a character: `\\ud800` to `\\udfff`, alone; write a whole one"
        ) from None
    except RecursionError:
        raise UnusableInput(f"`{path}` is nested too deeply to be a cluster") from None
    except ValueError:
        raise UnusableInput(f"`{path}` has a whole number beyond 64 bits, which no field of an object takes") from None


def _int64(text: str) -> int:
    number = int(text)  # raises ValueError for thousands of digits
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _profiles(path: Path | None, params: Mapping[str, str]) -> list[Profile]:
    if path is None:
        from policyengine.plugins.registry import default_profile

        return [default_profile()]
    from policyengine.language.parse import SourceError

    try:
        profiles = load_profiles([path], params)
    except SourceError as error:
        raise UnusableInput(str(error)) from None
    if not profiles:
        raise UnusableInput(f"`{path}` holds no policy")
    return profiles
