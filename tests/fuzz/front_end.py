"""Coverage-guided fuzzing of the front end: parse, check, lint, format. `make fuzz` runs it for a while.

    python -m tests.fuzz.front_end [SECONDS]

No bytes may raise. An input that does is printed by atheris, and kept in its working folder.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
LONGEST = 4096


def one_input(raw: bytes) -> None:
    """Everything that is done with a text before it decides anything."""
    from policyengine.compiler.front import checked
    from policyengine.language.diagnostics import render
    from policyengine.language.format import format_source
    from policyengine.language.lint.lint_settings import Settings
    from policyengine.language.lint.linter import lint
    from policyengine.language.parse import SourceError, decode_source
    from policyengine.plugins.facts import plugin_facts

    try:
        source = decode_source(raw, "fuzz.policy")
    except SourceError:
        return
    found = checked([source], plugin_facts())
    opinions = lint(source, found.trees[0], found.policies, plugin_facts(), Settings())
    render([*found.findings, *opinions], source)
    format_source(source)


def corpus(folder: Path) -> None:
    """Every policy and every case of a lint rule, to start from."""
    files = [*(ROOT / "policies").glob("*.policy"), *(ROOT / "tests" / "language" / "lint").glob("PE*.md")]
    for number, file in enumerate(files):
        (folder / f"{number}-{file.stem}").write_bytes(file.read_bytes()[:LONGEST])


def main(arguments: list[str]) -> int:
    """0 when nothing was found, or atheris is not there."""
    if importlib.util.find_spec("atheris") is None:
        print("skipped: atheris is not installed (pip install atheris)")
        return 0
    import atheris

    seconds = int(arguments[0]) if arguments else SECONDS
    with atheris.instrument_imports(include=["policyengine.language", "policyengine.compiler.front"]):
        one_input(b'policy "p" {}')
    with tempfile.TemporaryDirectory(prefix="policyengine-fuzz-") as folder:
        corpus(Path(folder))
        limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-timeout=5", "-rss_limit_mb=2048"]
        atheris.Setup([sys.argv[0], *limits, folder], one_input)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
