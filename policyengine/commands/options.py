"""What options of several commands share: durations, moments, addresses, params, clusters; and unusable input."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
from click.core import ParameterSource

from policyengine.control_characters import escaped_lines

if TYPE_CHECKING:
    from policyengine.recording.redaction import Redaction
    from policyengine.server.certificate import CertificateFiles

    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType  # not generic in every version of click that will do

LOOPBACK = "127.0.0.1"
Command = TypeVar("Command", bound=Callable[..., Any])


class UnusableInput(click.ClickException):
    """A file, a policy, a plugin or a name that cannot be used; the message says what to do.

    (Flags that do not go together are a `click.UsageError`.)
    """

    exit_code = 2

    def format_message(self) -> str:
        """The message without controls: it may hold names out of a file."""
        return escaped_lines(self.message)


def cannot_read(path: Path, error: OSError) -> UnusableInput:
    """The error for a file that the system does not let us read."""
    return UnusableInput(f"cannot read `{path}`: {_reason(error)}")


def cannot_write(path: Path, error: OSError) -> UnusableInput:
    """The error for a file that the system does not let us write."""
    return UnusableInput(f"cannot write `{path}`: {_reason(error)}")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class Number(click.FloatRange):
    """A number between two others. `nan`, which click takes for one, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType`."""
        found = super().convert(value, param, ctx)
        return self.fail(f"`{value}` is no number", param, ctx) if found != found else found


class Moment(_Seconds):
    """`2026-01-05T18:30:00+01:00`, as RFC 3339 has it; seconds since the epoch."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds, or a usage error that names the option."""
        from policyengine.language.values import parse_timestamp

        return _seconds(parse_timestamp, value, lambda message: self.fail(message, param, ctx))


class Duration(_Seconds):
    """`90s`, `5m`, `1h30m`, as Go writes them, longer than nothing; seconds."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds, or a usage error that names the option."""
        from policyengine.language.values import parse_duration

        seconds = _seconds(parse_duration, value, lambda message: self.fail(message, param, ctx))
        if seconds <= 0:
            self.fail(f"`{value}` is not longer than nothing", param, ctx)
        return seconds


def _seconds(parse: Callable[[str], int], value: Any, fail: Callable[[str], Any]) -> float:
    if isinstance(value, float):
        return value
    from policyengine.language.values import EvaluationError

    try:
        return parse(value) / 1e9
    except EvaluationError as error:
        return float(fail(str(error)))


def host_and_port(what: str, text: str, example: int) -> tuple[str, int]:
    """Where the flag or variable `what` says to listen: on loopback without a host.

    Raises:
        click.UsageError: it names no port; the message shows how one is written, with `example`.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"{what} is `{text}`, which names no port; write {LOOPBACK}:{example} or :{example}")
    return host.strip("[]") or LOOPBACK, int(port)


def is_coloured(stream: TextIO) -> bool:
    """Whether text for the stream bears colours: on a terminal, unless `NO_COLOR` has a value (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def file_option(*names: str, help: str | None = None, **more: Any) -> Callable[[Command], Command]:
    """An option that names a file, as a `Path`."""
    return click.option(*names, type=click.Path(path_type=Path), metavar="FILE", help=help, **more)


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Options as one, in the order of the help."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 1_024),
    default=lambda: os.cpu_count() or 1,
    show_default=False,
    metavar="N",
    help="Processes that play.  [default: one a processor]",
)


def refuse_given(what_for: str, *options: str) -> None:
    """A usage error where one of the running command's options was given that means nothing there: `--now is for …`."""
    context = click.get_current_context()
    for option in options:
        if context.get_parameter_source(option.lstrip("-").replace("-", "_")) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} is for {what_for}")


def output_option(*forms: str, older: str = "", help: str = "How it is written.") -> Callable[[Command], Command]:
    """`-o`, which says in which form a command writes, the first unless asked; `older` is a flag that says it too."""
    names = ("-o", "--output", *([older] if older else []), "output")
    return click.option(*names, type=click.Choice(forms), default=forms[0], help=help)


STDIN = "<stdin>"
"""How findings name standard input, which commands read as the file `-`."""

stdin_name_option = click.option(
    "--stdin-filename",
    "stdin_name",
    default=STDIN,
    show_default=False,
    metavar="FILE",
    help="What the file read as `-` is called.",
)


context_option = click.option("--context", metavar="NAME", help="Context of the kubeconfig; default: its current one.")


def cluster_options(help: str) -> Callable[[Command], Command]:
    """`--kubeconfig` and `--context`."""

    return together(file_option("--kubeconfig", help=help), context_option)


SCHEDULER_NAMESPACE = "kube-system"
"""Where a scheduler's Lease is looked for, unless `--scheduler-namespace` says otherwise."""
SCHEDULER_NAMESPACE_VARIABLE = "POLICYENGINE_NAMESPACE"

scheduler_namespace_option = click.option(
    "--scheduler-namespace",
    "leases",
    default=SCHEDULER_NAMESPACE,
    show_envvar=True,
    envvar=SCHEDULER_NAMESPACE_VARIABLE,
    metavar="NAME",
    help="Where the Lease of the scheduler that runs is.",
)

CLIENT_CA_HELP = "Answer callers who show a certificate that these authorities signed; health is open to all."
CLIENT_NAME_HELP = "Common name that such a certificate must have; may be repeated. Default: any."
AUTHENTICATION_HELP = "TokenReview: callers show a bearer token, and need the right to the path."


port_options = together(
    file_option("--tls-cert-file", help="Serve HTTPS with this certificate."),
    file_option("--tls-private-key-file", help="Its key."),
    file_option("--client-ca-file", help=CLIENT_CA_HELP),
    click.option("--client-name", "client_names", multiple=True, metavar="NAME", help=CLIENT_NAME_HELP),
)
"""The certificate of a port, and whose certificates it believes."""


def port_certificate(certificate: Path | None, key: Path | None, client_ca: Path | None) -> CertificateFiles | None:
    """What `port_options` name; None without a certificate. Raises `UnusableInput`, and a usage error for the rest
    without it."""
    if certificate is None:
        for option, value in (("--tls-private-key-file", key), ("--client-ca-file", client_ca)):
            if value is not None:
                raise click.UsageError(f"{option} needs --tls-cert-file")
        return None
    from policyengine.server.certificate import CertificateFiles, CertificateUnusable

    try:
        return CertificateFiles(certificate, key, client_ca)
    except CertificateUnusable as error:
        raise UnusableInput(str(error)) from None


redact_options = together(
    click.option("--redact", is_flag=True, help="Hide who runs what: hashes for names, images, label values."),
    file_option("--redact-key", help="The hashes' key; default: a random one that nobody keeps."),
)
"""`--redact` and `--redact-key`, for `redaction_of`."""

recording_options = together(
    click.option(
        "--record",
        "record_path",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIRECTORY",
        help="Write what the scheduler is told and does, for `policyengine replay`.",
    ),
    redact_options,
)
"""`--record` and how what is recorded is hidden."""


def recorded_redaction(record_path: Path | None, redact: bool, redact_key: Path | None) -> Redaction | None:
    """What `recording_options` say of hiding. Raises as `redaction_of`, and a usage error where nothing is recorded."""
    if record_path is None and (redact or redact_key is not None):
        raise click.UsageError("--redact and --redact-key are for --record")
    return redaction_of(redact, redact_key)


def redaction_of(redact: bool, redact_key: Path | None) -> Redaction | None:
    """What hides texts; None where nothing is to be hidden. Raises `UnusableInput`."""
    from policyengine.recording.redaction import UnusableKey, redaction

    try:
        return redaction(redact_key) if redact or redact_key is not None else None
    except UnusableKey as error:
        raise UnusableInput(str(error)) from None


def schema_option(module: str, of: str) -> Callable[[Command], Command]:
    """`--schema`, which prints what the `schema` of a module gives and ends the command."""

    def show(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
        if wanted:
            click.echo(json.dumps(import_module(module).schema(), indent=2))
            context.exit()

    told = f"Print the JSON schema of {of} and exit."
    return click.option("--schema", is_flag=True, expose_value=False, is_eager=True, callback=show, help=told)


def policy_option(help: str = "", **more: Any) -> Callable[[Command], Command]:
    """`--policy`, as the paths it was given."""
    told = f"A policy file, or a folder of them; may be repeated.{help}"
    path = click.Path(path_type=Path)
    return click.option("--policy", "paths", type=path, multiple=True, metavar="PATH", help=told, **more)


def _given(_context: click.Context, _option: click.Parameter, written: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for one in written:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"`{one}` is not of the form NAME=VALUE")
        if name in given:
            raise click.BadParameter(f"`{name}` is given twice")
        given[name] = value
    return given


param_option = click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_given,
    help='Another value of a param: headroom=4Gi, safe.zones=["a"] for one of a library; may be repeated.',
)
"""`--param`, as a mapping of names to texts."""
