"""The kubectl command that makes a change, quoted for a shell. Empty where there is none, or where a name could pass
for something else: no API server takes such a name, a file may hold it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def line(*words: str, names: Iterable[str] = (), namespace: str = "") -> str:
    """`kubectl WORD…`, in the namespace where one is given; `names`: those among the words that must be names."""
    named = [*names, *([namespace] if namespace else ())]
    if not all(map(_NAME.fullmatch, named)):
        return ""
    place = ["--namespace", namespace] if namespace else []
    return shlex.join(["kubectl", *place, *words])


def label(kind: str, names: Sequence[str], key: str, value: str, namespace: str = "") -> str:
    """Give objects a label, whatever it was before."""
    words = ("label", "--overwrite", kind, *names, f"{key}={value}")
    return line(*words, names=[*names, *key.split("/")], namespace=namespace)


def patch(kind: str, names: Sequence[str], namespace: str, how: str, change: object) -> str:
    """Patch objects; `how`: `merge` or `json`."""
    text = json.dumps(change, separators=(",", ":"))
    return line("patch", kind, *names, f"--type={how}", "--patch", text, names=names, namespace=namespace)
