"""Record an API server's answers, and compare two recordings.

    python -m tests.record record --kubeconfig FILE --out RECORDING [--etcd URL] [--original]
    python -m tests.record record --embedded --out RECORDING [--original]
    python -m tests.record compare RECORDING RECORDING

The calls are those of the recording of 1.36.2, or with `--original` the 74 of `../shared/recorded/apiserver-1.36.json`,
which need a fresh server. The server is written to: give it one that may be thrown away.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tests.record.compare import compare
from tests.record.servers import embedded, real
from tests.record.session import Session, recording


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.record", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="call a server and write down what it answers")
    which = record.add_mutually_exclusive_group(required=True)
    which.add_argument("--kubeconfig", type=Path, help="an administrator's, of a server that may be thrown away")
    which.add_argument("--embedded", action="store_true", help="the embedded server")
    record.add_argument("--etcd", default="", help="URL of the server's etcd, to record how its past is forgotten")
    record.add_argument("--out", type=Path, required=True)
    record.add_argument("--original", action="store_true", help="the 74 calls of the shared file")
    both = commands.add_parser("compare", help="say where two recordings differ")
    both.add_argument("recorded", type=Path)
    both.add_argument("given", type=Path)
    return parser.parse_args()


def record(session: Session, original: bool, out: Path) -> None:
    asyncio.run(session.replay(*recording(original)))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(session.calls, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(session.calls)} calls in {out}")


def main() -> int:
    asked = arguments()
    if asked.command == "record":
        session = real(asked.kubeconfig, asked.etcd) if asked.kubeconfig else embedded(*["Priority"][: asked.original])
        record(session, asked.original, asked.out)
        return 0
    recorded, given = (json.loads(path.read_text(encoding="utf-8")) for path in (asked.recorded, asked.given))
    problems = compare(recorded, given)
    for name, lines in problems.items():
        print(name, *lines, sep="\n    ")
    print(f"{len(recorded)} calls compared, {len(problems)} differ")
    return 1 if problems else 0


sys.exit(main())
