"""`kubectl policyengine`: what the schedulers that run in the cluster know; the plugin is `kubectl-policyengine`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from policyengine.commands import options

if TYPE_CHECKING:
    from policyengine.kube.config.credentials import Server

COMMAND_LINE = click.core.ParameterSource.COMMANDLINE
PROGRAM = "kubectl policyengine"
NO_FILES = 4
"""cobra's directive that a shell is to offer no files (ShellCompDirectiveNoFileComp)."""
_DEFAULTS = {"namespace": None, "context": None, "kubeconfig": None, "leases": options.SCHEDULER_NAMESPACE}


def _note(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    """Keep what a flag says, wherever it stands, as kubectl takes its flags before and after the name of a command. It
    beats what the environment says."""
    assert option.name is not None
    given = ctx.find_root().ensure_object(dict)
    if value is not None and (ctx.get_parameter_source(option.name) is COMMAND_LINE or option.name not in given):
        given[option.name] = value


_KEPT: dict[str, Any] = {"expose_value": False, "callback": _note}
_kubectl_flags = options.together(
    click.option("-n", "--namespace", metavar="NAME", help="Of the pods; default: the context's.", **_KEPT),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig; default: its current one.", **_KEPT),
    options.file_option("--kubeconfig", help="Default: $KUBECONFIG, ~/.kube/config.", **_KEPT),
    click.option(
        "--scheduler-namespace",
        "leases",
        metavar="NAME",
        envvar=options.SCHEDULER_NAMESPACE_VARIABLE,
        show_envvar=True,
        help=f"Where the schedulers' Leases are; default: {options.SCHEDULER_NAMESPACE}.",
        **_KEPT,
    ),
)


def _flags(ctx: click.Context) -> dict[str, Any]:
    return {**_DEFAULTS, **(ctx.find_root().obj or {})}


def _server(ctx: click.Context) -> Server:
    from policyengine.kube.config import credentials

    given = _flags(ctx)
    return credentials.load(given["kubeconfig"], given["context"])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@_kubectl_flags
def plugin() -> None:
    """What the policyengine schedulers of the cluster know.

    They are found by their Leases and asked through the API server: no port-forward. The Role policyengine-user gives
    the right to.
    """


def _page(name: str, help: str) -> None:
    """A command that shows the page `/debug/NAME` of every scheduler that runs."""

    @click.pass_context
    def run(ctx: click.Context, output: str) -> None:
        from policyengine.commands.explaining.running_scheduler import pages
        from policyengine.commands.kubectl_tables import show

        found = pages(_server(ctx), _flags(ctx)["leases"], f"/debug/{name}")
        show(name, found, output, _flags(ctx)["namespace"] if name == "queue" else None)

    plugin.command(name, help=help)(_kubectl_flags(options.output_option("table", "json")(run)))


_page("status", "Policies that serve, with their hashes; ConfigMaps and SchedulingPolicies, and what became of them.")
_page("queue", "Pods that wait, in the order of their turns, and why; of all namespaces unless -n names one.")
_page("quota", "Quotas: what is used, guaranteed and borrowed; tenants and their shares.")
_page("rollout", "Policies that are tried beside those that serve: agreement, budget, and why one was suspended.")


def _pods(ctx: click.Context, argument: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of pods that wait; none where nobody can be asked."""
    from policyengine.commands.explaining.running_scheduler import pages
    from policyengine.kube.config.access import AccessDenied, Unreachable
    from policyengine.kube.config.kubeconfig import ConfigError

    try:
        server = _server(ctx)
        namespace = _flags(ctx)["namespace"] or server.namespace or "default"
        known = [
            key.partition("/") for page in pages(server, _flags(ctx)["leases"], "/debug/queue") for key in page["pods"]
        ]
    except (AccessDenied, Unreachable, ConfigError, options.UnusableInput):
        return []  # a shell that completes has nowhere to show it
    return [CompletionItem(name) for where, _, name in known if where == namespace and name.startswith(incomplete)]


@plugin.command
@click.argument("pod", metavar="[NAMESPACE/]NAME", shell_complete=_pods)
@_kubectl_flags
@options.output_option("text", "json")
@click.pass_context
def why(ctx: click.Context, pod: str, output: str) -> None:
    """Why a pod waits, or is where it is: as `policyengine explain`."""
    from policyengine.commands.explain import explain

    given = _flags(ctx)
    if given["namespace"] is not None and "/" not in pod:
        pod = f"{given['namespace']}/{pod}"
    named = [f"--{name}={given[name]}" for name in ("kubeconfig", "context") if given[name] is not None]
    named.append(f"--scheduler-namespace={given['leases']}")
    explain.main([*named, "--output", output, "--", pod], prog_name=f"{PROGRAM} why", standalone_mode=False)


def main() -> None:
    """`kubectl-policyengine`, which kubectl runs for `kubectl policyengine`."""
    from policyengine.commands.main import main as run

    run(command=plugin, prog_name=PROGRAM)


def complete() -> None:
    """`kubectl_complete-policyengine`: kubectl's completion runs it with the words so far, the last one unfinished."""
    *words, last = sys.argv[1:] or [""]
    for item in ShellComplete(plugin, {}, PROGRAM, "").get_completions(words, last):
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{NO_FILES}")
