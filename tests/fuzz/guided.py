"""Coverage-guided fuzzing by atheris, of one target a process. `make fuzz` runs every target for a while.

    python -m tests.fuzz.guided TARGET [SECONDS]

A target takes any bytes: it neither raises nor logs a traceback, and does not take longer than `LONGEST`. An input that
makes it do so is printed and kept in `build/fuzz/`; a file from there as the second argument is tried alone. What was
found to reach new code is kept there too, and is what the next run starts from.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

KEPT = Path(__file__).resolve().parents[2] / "build" / "fuzz"
SECONDS = 120
LONGEST = 1.0
"""Seconds of CPU time for one input."""
LARGEST = 8192
"""Bytes of an input."""
MODULES: Mapping[str, str] = {
    "front-end": "front_end",
    **dict.fromkeys(("kubeconfig", "configuration", "scenario", "suite", "dump"), "readers"),
    **dict.fromkeys(("manifest", "scheduling-policy", "convert"), "readers"),
    **dict.fromkeys(("webhook", "extender", "endpoints"), "listeners"),
}
"""Target -> the module of this folder whose `target(name)` gives it."""


class Target(NamedTuple):
    """What is fuzzed."""

    take: Callable[[bytes], None]
    """Does everything with an input. Raises what must not happen."""
    seeds: list[bytes]
    """Inputs to start from."""
    damage: Callable[[bytes, int], bytes] | None = None
    """An input and a seed -> another input, beside the fuzzer's own ways."""


def in_time(take: Callable[[bytes], None], raw: bytes) -> None:
    """Take an input. Raises AssertionError if that took too long."""
    started = time.process_time()
    take(raw)
    spent = time.process_time() - started
    assert spent < LONGEST, f"{len(raw)} bytes took {spent:.1f} s of CPU time"


def main(arguments: list[str]) -> int:
    """0 when nothing was found, or atheris is not there; 2 for a target that is none."""
    if not arguments or arguments[0] not in MODULES:
        print(f"say which target: {', '.join(MODULES)}")
        return 2
    if importlib.util.find_spec("atheris") is None:
        print("skipped: atheris is not installed (pip install atheris)")
        return 0
    import atheris

    name, how_long = arguments[0], arguments[1] if arguments[1:] else str(SECONDS)
    with atheris.instrument_imports(include=["policyengine"]):
        made: AbstractContextManager[Target] = import_module(f"tests.fuzz.{MODULES[name]}").target(name)
    with made as target:
        for seed in target.seeds:
            target.take(seed)  # what is loaded or made only once is no input's fault
        if how_long.isdecimal():
            fuzz(target, KEPT / name, how_long)
        else:
            in_time(target.take, Path(how_long).read_bytes())
    return 0


def fuzz(target: Target, corpus: Path, seconds: str) -> None:
    """Take inputs for so many seconds; the process ends with them."""
    import atheris

    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed[:LARGEST])

    def mutated(raw: bytes, most: int, seed: int) -> bytes:
        if target.damage is not None and seed % 2:
            return target.damage(raw, seed)[:most]
        return bytes(atheris.Mutate(raw, most))

    limits = [f"-max_total_time={seconds}", f"-max_len={LARGEST}", "-timeout=10", "-rss_limit_mb=2048"]
    told = ["-print_final_stats=1", f"-artifact_prefix={corpus}-", "-verbosity=0"]
    atheris.Setup(
        [sys.argv[0], *limits, *told, str(corpus)],
        lambda raw: in_time(target.take, raw),
        custom_mutator=mutated,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
