"""`policyengine new`: a start that lints and passes its tests, for a policy or for a plugin in Python."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

import click

from policyengine.cluster.pod_objects import DEFAULT_SCHEDULER_NAME
from policyengine.commands.options import UnusableInput, cannot_write

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TAKEN = {*sys.stdlib_module_names, *keyword.kwlist, "numpy", "policyengine", "pytest"}
"""What no package of its own can be imported as."""
_SUFFIX = ".start"
_FILTER, _BIND = "filter", "bind"
_KEEPS_OFF = "pods keep off nodes that run many already (`most`), and go where the fewest run"
_SAYS_WHERE = "a pod is bound with an annotation that says where it went, and its owner is told"
POINTS = {
    "pre-enqueue": ("pre-enqueue", "pods stay out of the queue until an annotation says that they are ready"),
    "queue-sort": ("queue-sort", "pods with the nearest deadline are tried first"),
    "pre-filter": (_FILTER, _KEEPS_OFF),
    "filter": (_FILTER, _KEEPS_OFF),
    "post-filter": ("post-filter", "a pod that fits nowhere is told whom to ask for room"),
    "pre-score": (_FILTER, _KEEPS_OFF),
    "score": (_FILTER, _KEEPS_OFF),
    "reserve": ("reserve", "so many pods with one licence stand at a time"),
    "permit": ("permit", "a pod that has a place is bound some seconds later"),
    "pre-bind": ("pre-bind", "a pod is bound once the Service exists that it names"),
    "bind": (_BIND, _SAYS_WHERE),
    "post-bind": (_BIND, _SAYS_WHERE),
}
"""Extension point -> the start that has it, and what the plugin does that is made of it."""
MOST = 63
"""The length of a scheduler's name that is a label's value, too."""

into = click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    show_default=False,
    metavar="FOLDER",
    help="Where to make it; default: here.",
)


def _name(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > MOST:
        raise click.BadParameter(
            f"`{name}` is no name: small letters, digits and single `-`, a letter first, 63 at most"
        )
    return name


@click.group()
def new() -> None:
    """Make a start that works: it lints, and its tests pass. Nothing that exists is written over."""


@new.command()
@click.argument("name", callback=_name)
@into
def policy(name: str, into: Path) -> None:
    """NAME.policy: a filter, a score, a param, and tests that cover them."""
    if name == DEFAULT_SCHEDULER_NAME:
        raise UnusableInput(f"`{name}` is served by kube-scheduler: two schedulers would race; choose another name")
    path = into / f"{name}.policy"
    _write({path: _filled(_start("policy") / f"name.policy{_SUFFIX}", name)})
    click.echo(f"made {path}; next: policyengine test --coverage {path}")


@new.command()
@click.argument("name", callback=_name)
@click.option("--point", type=click.Choice(tuple(POINTS)), default=_FILTER, help="Where it is asked.")
@into
def plugin(name: str, point: str, into: Path) -> None:
    """A Python package in the folder NAME: a plugin, its entry point, a policy that uses it, and tests.

    That of `filter` has PreFilter, PreScore and Score as well, that of `bind` PostBind.
    """
    from policyengine.plugins.registry import IN_TREE

    if plugin_name(name) in IN_TREE:
        raise UnusableInput(f"`{plugin_name(name)}` is the name of a plugin in tree; choose another")
    if (module := module_name(name)) in _TAKEN:
        raise UnusableInput(
            f"no module of a package can be called `{module}`, as Python has one or a word of that name"
        )
    folder = into / name
    if folder.exists():
        raise UnusableInput(f"`{folder}` exists already")
    starts = {one.name: one for one in _start("plugin").iterdir()}
    kind, what = POINTS[point]
    if kind != _FILTER:
        starts |= {one.name: one for one in _start(f"plugin-{kind}").iterdir()}
    made = {start: one for start, one in starts.items() if start.endswith(_SUFFIX)}
    _write({folder / _file(start, name): _filled(one, name, what) for start, one in made.items()})
    click.echo(f"made {folder}; next: cd {folder} && pip install -e '.[dev]' && pytest")


def plugin_name(name: str) -> str:
    """`even-nodes` -> `EvenNodes`."""
    return "".join(part.capitalize() for part in name.split("-"))


def module_name(name: str) -> str:
    """`even-nodes` -> `even_nodes`."""
    return name.replace("-", "_")


def _start(kind: str) -> Traversable:
    return files("policyengine.commands").joinpath("starts", kind)


def _file(start: str, name: str) -> str:
    """The name of the file that is made of a start."""
    made = start.removesuffix(_SUFFIX)
    return made.replace("name.", f"{name}.") if made.startswith("name.") else made.replace("module", module_name(name))


def _filled(start: Traversable, name: str, what: str = "") -> str:
    template = Template(start.read_text(encoding="utf-8"))
    return template.substitute(name=name, plugin=plugin_name(name), module=module_name(name), what=what)


def _write(texts: dict[Path, str]) -> None:
    """Write all files, or none where one cannot be."""
    for path in texts:
        if path.exists():
            raise UnusableInput(f"`{path}` exists already")
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise cannot_write(path, error) from None
