"""What types and fields are for, in a sentence each: `kubectl explain` shows these, from `schemas/descriptions.txt`."""

import re
from functools import cache

from policyengine.simulator.api_server.kinds.schema import FOLDER

API_VERSION = "The group and version of this form of the object, for instance `apps/v1`."
KIND = "What the object is, for instance `Pod`."
METADATA = "The object's name, labels and the like."
SPEC = "What is wished for."
STATUS = "What is observed."
_WORD = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]")


@cache
def _texts() -> dict[str, str]:
    lines = (FOLDER / "descriptions.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("  ") for line in lines if line and not line.startswith("#"))
    return {key: text for key, _, text in pairs}


def of_type(name: str) -> str:
    """What a type is for, by its Go name: `PodSpec`."""
    return _texts().get(name) or f"{_words(name)}."


def of_field(owner: str, name: str) -> str:
    """What a field of a type is for."""
    common = {"metadata": METADATA, "spec": SPEC, "status": STATUS}
    return _texts().get(f"{owner}.{name}") or common.get(name) or f"{_words(name)}."


def _words(name: str) -> str:
    """A name in Go's spelling as words: `podIPs` is `Pod IPs`."""
    text = " ".join(word if word[:2].isupper() and len(word) > 1 else word.lower() for word in _WORD.findall(name))
    return text[:1].upper() + text[1:]
