"""`policyengine`: the group of commands, and the one place where a known error becomes one line and an exit code.

A command's module is imported when it is asked for: help and completion stay fast. Exit codes of all commands:
0 success, 1 a negative verdict, 2 usage or unusable input, 3 server unreachable; 130 and 141 as shells tell of Ctrl-C
and of an output that nobody reads any more.
"""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from policyengine.control_characters import escaped_lines
from policyengine.version import __version__

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# numpy's OpenBLAS starts a thread for every core, which spins for 20 ms before it sleeps. No matrix is multiplied here.

COMMANDS = {
    "annotate": "What nodes really use, from Prometheus or metrics.k8s.io, as annotations.",
    "completion": "What a shell reads so that Tab completes commands and flags.",
    "config": "Check the configuration of `run`, and print it whole.",
    "convert": "kube-scheduler's configuration to a policy, or a policy to it.",
    "demo": "Show a policy at work on a cluster in memory; ends by itself.",
    "explain": "Why pods wait, or are where they are, and what would help.",
    "extender": "Policies behind a stock kube-scheduler, over its extender protocol.",
    "fmt": "Put policy files into the one style.",
    "import": "A trace from elsewhere as a recording: openb, SWF, CSV.",
    "lint": "Find what is wrong in policy files.",
    "lsp": "The language server for editors.",
    "new": "A start for a policy or a plugin: it lints and passes its tests.",
    "plan": "What another policy would do: on a cluster, a recording or a scenario.",
    "record": "Watch a cluster, whoever schedules it, and write down what happens.",
    "replay": "Play a recording again: the same decisions, or the first that differs.",
    "rewards": "Learn where which pods fare well, for policies to read.",
    "run": "Schedule the pods of a cluster.",
    "sandbox": "An API server, nodes and the scheduler in one process.",
    "simulate": "Play a scenario on virtual time: who is placed where, and when.",
    "test": "Run the tests of policies, with coverage and mutation.",
    "tune": "Find values and weights that do better on recorded days.",
    "web": "Pages to look at: a cluster in a file, a recording, or one that is watched.",
    "webhook": "Refuses broken policies at kubectl apply, as an admission webhook.",
}
"""Command -> its line in the help. The command `x` is the function `x` of the module `policyengine.commands.x`; where
that is a keyword of Python, `x_` of `policyengine.commands.x_`."""

SUCCESS, NEGATIVE, UNUSABLE, UNREACHABLE = 0, 1, 2, 3
INTERRUPTED, CLOSED_PIPE = 130, 141
"""As shells tell of SIGINT and SIGPIPE."""

EXIT_CODES = {
    "policyengine.compiler.params.ParamError": UNUSABLE,
    "policyengine.kube.config.kubeconfig.ConfigError": UNUSABLE,
    "policyengine.kube.config.access.AccessDenied": UNUSABLE,
    "policyengine.kube.config.configuration.ConfigurationError": UNUSABLE,
    "policyengine.kube.leader.LeadershipLost": NEGATIVE,
    "policyengine.kube.record_writer.RecordingUnusable": UNUSABLE,
    "policyengine.recording.segment.UnusableRecording": UNUSABLE,
    "policyengine.kube.extenders.http_extender.ExtenderUnusable": UNUSABLE,
    "policyengine.kube.config.access.Unreachable": UNREACHABLE,
    "policyengine.language.lint.lint_settings.SettingsError": UNUSABLE,
    "policyengine.language.parse.SourceError": UNUSABLE,
    "policyengine.server.annotator.measurement.QueryRefused": UNUSABLE,
    "policyengine.server.annotator.measurement.SourceUnreachable": UNREACHABLE,
    "policyengine.server.extender.app.CannotServe": UNUSABLE,
    "policyengine.server.listening.CannotListen": UNUSABLE,
    "policyengine.server.tracing.TracingUnusable": UNUSABLE,
    "policyengine.kube.stores.StoreError": UNUSABLE,
    "policyengine.simulator.api_server.http.PortInUse": UNUSABLE,
    "policyengine.simulator.real_server.ServerError": UNUSABLE,
    "policyengine.simulator.sandbox.SandboxError": UNUSABLE,
    "policyengine.trials.scenario.ScenarioError": UNUSABLE,
}
"""Errors whose message is meant for the user, by name, so that none of their modules is imported for it."""


class LazyGroup(click.Group):
    """A group that imports a command when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; None where there is none of the name."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = getattr(importlib.import_module(f"policyengine.commands.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; a usage error names the one that is nearest to it, or where all are listed."""
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        from policyengine.suggestion import closest

        near = closest(name, COMMANDS)
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(sorted(COMMANDS))}"
        raise click.UsageError(escaped_lines(f"no command is called `{name}`; {hint}"), ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, without importing them, and flags."""
        found = [
            CompletionItem(name, help=line) for name, line in sorted(COMMANDS.items()) if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, "-V", "--version", prog_name="policyengine")
def cli() -> None:
    """A Kubernetes scheduler whose behaviour is a text file.

    Exit codes: 0 success, 1 a negative verdict, 2 usage or unusable input, 3 server unreachable.
    """


def main(arguments: Sequence[str] | None = None, command: click.Command = cli, prog_name: str = "policyengine") -> None:
    """Run the command line and exit; never shows a traceback for what a user can put right."""
    output = sys.stdout
    try:
        code = command.main(arguments, prog_name=prog_name, standalone_mode=False)
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code if error.exit_code != 1 else UNUSABLE
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except SystemExit as error:
        # Where the reader of the output went away, click puts something else in its place, rich says so by the context;
        # both exit with 1, which is a verdict.
        if sys.stdout is output and not isinstance(error.__context__, BrokenPipeError):
            raise
        code = CLOSED_PIPE
    except Exception as error:
        code = _known(error)
        click.echo(f"error: {escaped_lines(str(error))}", err=True)
    sys.exit(code if isinstance(code, int) else SUCCESS)


def _known(error: Exception) -> int:
    """The exit code of an error that is the user's to put right; any other is a bug and raised again."""
    for kind in type(error).__mro__:
        code = EXIT_CODES.get(f"{kind.__module__}.{kind.__qualname__}")
        if code is not None:
            return code
    raise error


if __name__ == "__main__":
    main()
