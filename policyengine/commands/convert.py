"""`policyengine convert`: kube-scheduler's configuration to a policy, and a policy to that configuration or to a
SchedulingPolicy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click

from policyengine.commands import options
from policyengine.control_characters import escaped

if TYPE_CHECKING:
    from policyengine.compiler.conversion.input_documents import Document

DEFAULT_URL = "http://127.0.0.1:8888"
Target = Literal["policy", "run", "kube-scheduler", "scheduling-policy"]
_LARGEST = 1024 * 1024


@click.command()
@click.argument("files", type=click.Path(path_type=Path), metavar="FILE...", nargs=-1)
@options.policy_option(help=" The same as FILE.")
@options.output_option(
    *get_args(Target),
    older="--to",
    help="policy, run: each FILE is a KubeSchedulerConfiguration (YAML) or a Policy (JSON), ElasticQuotas beside them; "
    "kube-scheduler: policies; scheduling-policy: policies, or a manifest of ConfigMaps.",
)
@options.param_option
@click.option("--url", help=f"Where kube-scheduler reaches the extender.  [default: {DEFAULT_URL}]")
def convert(
    files: tuple[Path, ...], paths: tuple[Path, ...], output: Target, params: dict[str, str], url: str | None
) -> None:
    """Write the policy that means what a kube-scheduler configuration means, with a note for what has no equivalent.

    With -o run: its extenders, as a configuration file of `policyengine run`. With -o kube-scheduler: the
    configuration that runs policies behind a stock kube-scheduler, their base as plugins and their rules as extenders.
    With -o scheduling-policy: the manifest of a SchedulingPolicy, for `kubectl apply`.
    """
    given = [*files, *paths]
    if not given:
        raise click.UsageError("name at least one FILE")
    if output != "kube-scheduler" and (params or url is not None):
        raise click.UsageError("--param and --url go with -o kube-scheduler; an object has its params in `spec.params`")
    if output == "policy":
        click.echo(_policies(given), nl=False)
    elif output == "run":
        click.echo(_run_configuration(given), nl=False)
    elif output == "scheduling-policy":
        from policyengine.commands.policy_object import scheduling_policies

        click.echo("---\n".join(scheduling_policies(path) for path in given), nl=False)
    else:
        click.echo(_configuration(given, params, url or DEFAULT_URL), nl=False)


def _policies(paths: Sequence[Path]) -> str:
    from policyengine.compiler.conversion.input_documents import wanted_profiles
    from policyengine.compiler.conversion.reading import ConversionError
    from policyengine.compiler.conversion.wanted import policy_text
    from policyengine.plugins.registry import IN_TREE

    found = _documents(paths)
    try:
        text = "\n".join(policy_text(wanted, IN_TREE) for wanted in wanted_profiles(found, IN_TREE))
    except ConversionError as error:
        raise options.UnusableInput(str(error)) from None
    _check(text)
    return text


def _check(text: str) -> None:
    """Raise `UnusableInput` where a configuration asks for what no policy may have, such as two rules of one name."""
    from policyengine.language.diagnostics import Severity, Source, render
    from policyengine.policy_compiler import compile_text

    source = Source("the policy that it would be", text)
    result = compile_text(text, source.file)
    if result.failed:
        errors = [one for one in result.diagnostics if one.severity is Severity.ERROR]
        click.echo(render(errors, source, options.is_coloured(sys.stderr)), err=True)
        raise options.UnusableInput(
            "no policy can be what the configuration asks for; change there what is marked above"
        )


def _run_configuration(paths: Sequence[Path]) -> str:
    import yaml

    from policyengine.compiler.conversion.input_documents import run_configuration
    from policyengine.compiler.conversion.reading import ConversionError
    from policyengine.kube.config.configuration import read

    shown = ", ".join(map(str, paths))
    try:
        data, notes = run_configuration([one.value for one in _documents(paths)])
    except ConversionError as error:
        raise options.UnusableInput(f"`{shown}`: {error}") from None
    text: str = yaml.safe_dump(data, sort_keys=False, width=120)
    read(text, shown)
    return "".join(f"# note: {escaped(note)}\n" for note in notes) + text


def _documents(paths: Sequence[Path]) -> list[Document]:
    from policyengine import plain_yaml, regular_file
    from policyengine.compiler.conversion.input_documents import documents
    from policyengine.compiler.conversion.reading import ConversionError

    found: list[Document] = []
    for path in paths:
        try:
            raw = regular_file.read(path, _LARGEST)
            nodes = plain_yaml.documents(raw.decode())
            found += documents(str(path), [plain_yaml.plain(node) for node in nodes])
        except OSError as error:
            raise options.cannot_read(path, error) from None
        except UnicodeDecodeError as error:
            raise options.UnusableInput(
                f"`{path}` is not UTF-8: byte {error.start} is `0x{raw[error.start]:02x}`"
            ) from None
        except plain_yaml.PlainYamlError as error:
            told = str(error).replace("is not YAML", "is neither YAML nor JSON", 1)
            raise options.UnusableInput(f"`{path}` {told}") from None
        except ConversionError as error:
            raise options.UnusableInput(str(error)) from None
    return found


def _configuration(paths: Sequence[Path], params: dict[str, str], url: str) -> str:
    import yaml

    from policyengine.commands.policies import compiled
    from policyengine.compiler.conversion.kube_scheduler import kube_scheduler_configuration, without_place
    from policyengine.plugins.registry import IN_TREE

    policies = compiled(paths, params).policies
    notes = "".join(f"# note: {note}\n" for note in without_place(policies))
    data = kube_scheduler_configuration(policies, IN_TREE, url, params)
    return notes + yaml.safe_dump(data, sort_keys=False, width=120)
