"""Record an API server's answers, and compare two recordings.

    python -m tests.record record --kubeconfig FILE --out RECORDING [--etcd URL] [SCRIPT ...]
    python -m tests.record record --embedded --out RECORDING [SCRIPT ...]
    python -m tests.record compare RECORDING RECORDING

The server is written to: give it one that may be thrown away.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tests.record.compare import compare
from tests.record.scripts import ALL, SCRIPTS, run
from tests.record.servers import embedded, real
from tests.record.session import Session


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.record", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="call a server and write down what it answers")
    which = record.add_mutually_exclusive_group(required=True)
    which.add_argument("--kubeconfig", type=Path, help="an administrator's, of a server that may be thrown away")
    which.add_argument("--embedded", action="store_true", help="the embedded server")
    record.add_argument("--etcd", default="", help="URL of the server's etcd, to record how its past is forgotten")
    record.add_argument("--out", type=Path, required=True)
    record.add_argument("scripts", nargs="*", metavar="SCRIPT", choices=[[], *ALL], help=f"of {', '.join(ALL)}")
    both = commands.add_parser("compare", help="say where two recordings differ")
    both.add_argument("recorded", type=Path)
    both.add_argument("given", type=Path)
    return parser.parse_args()


def record(session: Session, scripts: list[str], out: Path) -> None:
    asyncio.run(run(session, scripts))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(session.calls, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(session.calls)} calls in {out}")


def main() -> int:
    asked = arguments()
    if asked.command == "record":
        session = embedded()[1] if asked.embedded else real(asked.kubeconfig, asked.etcd)
        record(session, asked.scripts or list(SCRIPTS), asked.out)
        return 0
    recorded, given = (json.loads(path.read_text(encoding="utf-8")) for path in (asked.recorded, asked.given))
    problems = compare(recorded, given)
    for name, lines in problems.items():
        print(name, *lines, sep="\n    ")
    print(f"{len(recorded)} calls compared, {len(problems)} differ")
    return 1 if problems else 0


sys.exit(main())
