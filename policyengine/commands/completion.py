"""`policyengine completion`: what makes a shell complete our commands and flags."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """What a shell reads so that Tab completes commands, flags and their values.

    \b
    bash, in ~/.bashrc:  eval "$(policyengine completion bash)"
    zsh, in ~/.zshrc:    eval "$(policyengine completion zsh)"
    fish, once:          policyengine completion fish > ~/.config/fish/completions/policyengine.fish

    bash has to be 4.4 or newer. For `kubectl policyengine` kubectl's own completion is enough.
    """
    from policyengine.commands.main import cli

    complete = SHELLS[shell](cli, {}, "policyengine", "_POLICYENGINE_COMPLETE")
    click.echo(complete.source_template % complete.source_vars())
