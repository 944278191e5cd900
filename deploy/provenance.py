"""Writes DIRECTORY/provenance.json: which commit and which locks the files in DIRECTORY were made from.

An in-toto statement (v1) with SLSA provenance (v1). It is not signed: sign it with what your registry asks for.
"""

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.lock", "deploy/requirements.lock", "deploy/forecast.lock", "deploy/build.lock")


def git(root: Path, *arguments: str) -> str:
    """What git prints. Raises subprocess.CalledProcessError outside a repository."""
    done = subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def described(path: Path, name: str) -> dict[str, Any]:
    """A file as in-toto's ResourceDescriptor."""
    return {"name": name, "digest": {"sha256": sha256(path.read_bytes()).hexdigest()}}


def provenance(root: Path, made: Path) -> dict[str, Any]:
    """The statement about all files of a folder.

    Raises:
        SystemExit: the checkout has changes that are in no commit, so none describes what was made.
    """
    if changed := git(root, "diff", "--name-only", "HEAD"):
        raise SystemExit(f"{changed.splitlines()[0]} is changed and in no commit; commit it first")
    commit = {"uri": "git+file:policyengine", "digest": {"gitCommit": git(root, "rev-parse", "HEAD")}}
    files = sorted(path for path in made.iterdir() if path.is_file() and path.name != "provenance.json")
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [described(path, path.name) for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://policyengine.io/make-release/v1",
                "externalParameters": {"target": "release"},
                "resolvedDependencies": [commit, *(described(root / lock, lock) for lock in LOCKS)],
            },
            "runDetails": {"builder": {"id": "https://policyengine.io/make"}},
        },
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "provenance.json").write_text(json.dumps(provenance(ROOT, folder), indent=1) + "\n")
