"""`policyengine explain`: where each waiting pod of a cluster dump would go, and why not elsewhere. Offline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile


@click.command()
@click.option(
    "--cluster",
    "cluster_path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="`kubectl get nodes,pods,… -A -o json`, or an object with nodes, pods, pending, …; - reads standard input.",
)
@click.option(
    "--policy",
    "policy_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Policy that judges; default: the in-tree plugins as kube-scheduler runs them.",
)
@click.option("--pod", metavar="NS/NAME", help="Only this pending pod.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
def explain(cluster_path: Path, policy_path: Path | None, pod: str | None, output: str) -> None:
    """Judge every pending pod against the cluster in FILE, each alone.

    Shows the node that would be chosen, each plugin's share of the best scores, and the other nodes by what
    speaks against them. Nothing is placed and no server is asked.
    """
    from policyengine.cluster.objects import ObjectError
    from policyengine.scheduler.cluster_file import ClusterShapeError
    from policyengine.scheduler.explain import explain as explain_cluster

    cluster = read_json(cluster_path)
    profiles = _profiles(policy_path)
    try:
        entries = explain_cluster(cluster, profiles, pod, suggestions=True)
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
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UnusableInput(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}") from None
    try:
        return json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UnusableInput(f"`{path}` is not UTF-8: byte {error.start} is `0x{raw[error.start]:02x}`") from None
    except json.JSONDecodeError as error:
        raise UnusableInput(
            f"`{path}` is not JSON: line {error.lineno}, column {error.colno}: {error.msg.lower()}"
        ) from None
    except RecursionError:
        raise UnusableInput(f"`{path}` is nested too deeply to be a cluster") from None


class UnusableInput(click.ClickException):
    """Input that cannot be used: one message, exit code 2."""

    exit_code = 2


def _profiles(path: Path | None) -> list[Profile]:
    if path is None:
        from policyengine.plugins.registry import default_profile

        return [default_profile()]
    from policyengine.commands.policies import UnusablePolicy, load_profiles
    from policyengine.language.parse import SourceError

    try:
        profiles = load_profiles([path])
    except SourceError as error:
        raise UnusableInput(str(error)) from None
    if not profiles:
        raise UnusablePolicy(f"`{path}` holds no policy")
    return profiles
