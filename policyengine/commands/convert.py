"""`policyengine convert`: kube-scheduler's configuration to a policy, and a policy to that configuration or to a
SchedulingPolicy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from policyengine.commands.options import UnusableInput, cannot_read, output_option, param_option

if TYPE_CHECKING:
    from policyengine.compiler.conversion.configuration import WantedProfile

DEFAULT_URL = "http://127.0.0.1:8888"
Target = Literal["policy", "run", "kube-scheduler", "scheduling-policy"]
_LARGEST = 1024 * 1024


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@output_option(
    *get_args(Target),
    older="--to",
    help="policy, run: FILE is a KubeSchedulerConfiguration (YAML) or a Policy (JSON); kube-scheduler: a policy; "
    "scheduling-policy: policies, or a manifest of ConfigMaps.",
)
@param_option
@click.option("--url", default=DEFAULT_URL, show_default=True, help="Where kube-scheduler reaches the extender.")
def convert(path: Path, output: Target, params: dict[str, str], url: str) -> None:
    """Write the policy that means what a kube-scheduler configuration means, with a note for what has no equivalent.

    With -o run: its extenders, as a configuration file of `policyengine run`. With -o kube-scheduler: the
    configuration that runs a policy behind a stock kube-scheduler, its base as plugins and its rules as an extender.
    With -o scheduling-policy: the manifest of a SchedulingPolicy, for `kubectl apply`.
    """
    if output == "policy":
        click.echo(_policies(path), nl=False)
    elif output == "run":
        click.echo(_run_configuration(path), nl=False)
    elif output == "scheduling-policy":
        from policyengine.commands.policy_object import scheduling_policies

        click.echo(scheduling_policies(path), nl=False)
    else:
        click.echo(_configuration(path, params, url), nl=False)


def _policies(path: Path) -> str:
    from policyengine.compiler.conversion.configuration import ConversionError
    from policyengine.compiler.conversion.policy_text import policy_text
    from policyengine.plugins.registry import IN_TREE

    try:
        return "\n".join(policy_text(wanted, IN_TREE) for wanted in _wanted(_read(path)))
    except ConversionError as error:
        raise UnusableInput(f"`{path}`: {error}") from None


def _run_configuration(path: Path) -> str:
    import yaml

    from policyengine.compiler.conversion.configuration import ConversionError, run_configuration
    from policyengine.kube.config.configuration import read

    try:
        text: str = yaml.safe_dump(run_configuration(_read(path)), sort_keys=False, width=120)
    except ConversionError as error:
        raise UnusableInput(f"`{path}`: {error}") from None
    read(text, str(path))
    return text


def _wanted(value: object) -> list[WantedProfile]:
    from policyengine.compiler.conversion.configuration import kind_of, read_configuration
    from policyengine.compiler.conversion.legacy_policy import read_policy
    from policyengine.plugins.registry import IN_TREE

    if kind_of(value) == "Policy":
        return [read_policy(value, IN_TREE)]
    return read_configuration(value, IN_TREE)


def _read(path: Path) -> Any:
    from policyengine import plain_yaml, regular_file

    try:
        raw = regular_file.read(path, _LARGEST)
    except OSError as error:
        raise cannot_read(path, error) from None
    try:
        return plain_yaml.load(raw.decode())
    except UnicodeDecodeError as error:
        raise UnusableInput(f"`{path}` is not UTF-8: byte {error.start} is `0x{raw[error.start]:02x}`") from None
    except plain_yaml.PlainYamlError as error:
        told = str(error).replace("is not YAML", "is neither YAML nor JSON", 1)
        raise UnusableInput(f"`{path}` {told}") from None


def _configuration(path: Path, params: dict[str, str], url: str) -> str:
    import yaml

    from policyengine.commands.policies import compiled
    from policyengine.compiler.conversion.kube_scheduler import kube_scheduler_configuration, without_place
    from policyengine.plugins.registry import IN_TREE

    policies = compiled([path], params).policies
    notes = "".join(f"# note: {note}\n" for note in without_place(policies))
    data = kube_scheduler_configuration(policies, IN_TREE, url, params)
    return notes + yaml.safe_dump(data, sort_keys=False, width=120)
