"""`policyengine import`: a trace from elsewhere as a recording."""

from __future__ import annotations

import zlib
from pathlib import Path

import click

from policyengine.cluster.pod_objects import DEFAULT_SCHEDULER_NAME
from policyengine.commands.options import UnusableInput, cannot_read, cannot_write, refuse_given
from policyengine.commands.progress import progress
from policyengine.version import __version__

FORMATS = ("openb", "swf", "csv")


@click.command("import")
@click.argument("form", type=click.Choice(FORMATS), metavar="FORMAT")
@click.argument("tables", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE...")
@click.option(
    "-o", "--output", "out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="RECORDING"
)
@click.option(
    "--mapping", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="csv: what columns mean."
)
@click.option("--scheduler", default=DEFAULT_SCHEDULER_NAME, metavar="NAME", help="Whom the pods ask for.")
@click.option("--nodes", type=click.IntRange(1, 100_000), metavar="N", help="swf: instead of MaxNodes.")
@click.option("--cpus", type=click.IntRange(1, 10_000), metavar="N", help="swf: of a node.")
def import_(
    form: str,
    tables: tuple[Path, ...],
    out: Path,
    mapping: Path | None,
    scheduler: str,
    nodes: int | None,
    cpus: int | None,
) -> None:
    """Write a trace as a RECORDING, for `plan`: openb NODES PODS, swf JOBS, or csv tables with --mapping. Tables may be
    compressed with gzip.

    Exit codes: 0; 2 a file cannot be read, or the recording not written.
    """
    from policyengine.recording.directory import DirectoryInUse
    from policyengine.traces.writing import TraceError

    if (form == "csv") != (mapping is not None):
        raise click.UsageError("--mapping is for csv, and csv needs it")
    if form != "swf":
        refuse_given("swf", "--nodes", "--cpus")
    wanted = {"openb": 2, "swf": 1}.get(form)
    if wanted is not None and len(tables) != wanted:
        raise click.UsageError("give NODES and PODS" if form == "openb" else "give the file of jobs")
    try:
        if out.is_dir() and any(one.name != "lock" for one in out.iterdir()):  # what a trace that was wrong left behind
            raise UnusableInput(f"`{out}` is not empty: a trace is a recording of its own")
        with progress("importing"):
            count = (
                _swf(tables[0], out, scheduler, nodes, cpus) if form == "swf" else _csv(tables, mapping, out, scheduler)
            )
    except (TraceError, DirectoryInUse) as error:
        raise UnusableInput(str(error)) from None
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise UnusableInput(f"a file cannot be read as text: {error}") from None
    except OSError as error:
        read = Path(error.filename or out)
        raise (cannot_write if out in (read, *read.parents) else cannot_read)(read, error) from None
    click.echo(f"{count:,} pods in {out}")


def _swf(path: Path, out: Path, scheduler: str, nodes: int | None, cpus: int | None) -> int:
    from policyengine.traces import swf
    from policyengine.traces.mapping import opened
    from policyengine.traces.writing import write

    with opened(path, errors="replace") as file:  # comments of older logs are Latin-1
        lines = list(file)  # once: it may be a pipe
    found = swf.machine((line for line in lines if line.startswith(";")), nodes or 0, cpus or 0)
    return write(out, __version__, found.start, scheduler, swf.nodes_of(found), swf.pods_of(lines, found))


def _csv(tables: tuple[Path, ...], mapping: Path | None, out: Path, scheduler: str) -> int:
    from policyengine import regular_file
    from policyengine.checked_yaml import LARGEST
    from policyengine.traces.mapping import nodes_of, openb, pods_of, read, start_of
    from policyengine.traces.writing import write

    try:
        said = openb() if mapping is None else read(regular_file.read(mapping, LARGEST).decode(), str(mapping))
    except OSError as error:
        raise cannot_read(mapping or Path(), error) from None
    return write(out, __version__, start_of(said), scheduler, nodes_of(said, tables), pods_of(said, tables))
