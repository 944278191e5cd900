"""Hides who runs what in a recording: names, images, values of labels and the like become hashes under a key.

Rules:
1. A text is hidden word by word; what stands between words stays. So what is made of names (the claim `POD-VOLUME`, an
   image with `:latest` behind it) is made of hidden names too, and equal texts stay equal.
2. Numbers, quantities, durations, times and UUIDs stay, and so do the words that a recorded policy has between quotes:
   what it compares with them comes out as before.
3. Every text is hidden that no table below says stays; so are the keys of maps by name (`_NAMED_BY`).
4. Sentences are left out, the annotations that a policy works out, and of actions those that only say something:
   whether they are said anew depends on their text. Who plays the recording leaves the same out (`without_texts`).

    redaction = Redaction(b"key")
    redaction.hidden("web-0")            # "x7ub3qk…-xk2vb…"
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final

import msgspec

from policyengine import regular_file

Hide = Callable[[str], str]

SENTENCE: Final = "(hidden)"
SHORTEST_KEY: Final = 16
LONGEST_KEY: Final = 1 << 20
LONGEST: Final = 253
"""Characters above which a text is no name, and is hidden as a whole."""
_WORD: Final = re.compile(r"[^\W_]+")
_STAYS: Final = re.compile(
    r"[+-]?\d+(\.\d+)?(e[+-]?\d+|[numkMGTPE]|[KMGTPE]i)?"  # numbers and quantities
    r"|-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d))+"  # durations
    r"|\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
    r"|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|0\.0\.0\.0|::"  # all addresses of a node
)
_QUOTED: Final = re.compile(r"\"{3}.*?\"{3}|'{3}.*?'{3}|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL)
_WORDS: Final = "default kube system public node lease cluster critical latest true false yes extended resources"
"""Kubernetes' own words: of its namespaces and priorities, and those that the core adds to names and values."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SENTENCES: Final = frozenset({"message", "note", "error", "suspended"})
_STAY: Final = _names(
    # which kind of thing it is
    "kind form api_version apiVersion apiGroup resource subresource verb stamped plugin point policy policy_hash "
    # words of the API
    "$patch operator effect type status reason phase protocol restartPolicy action failure mode source finalizers "
    "whenUnsatisfiable nodeAffinityPolicy nodeTaintsPolicy preemptionPolicy allocationMode volumeMode accessModes "
    "volumeBindingMode qosClass disruptionMode declaredFeatures "
    # keys of labels, taints and fields
    "key topologyKey matchLabelKeys mismatchLabelKeys "
    # programs: schedulers, drivers, policyengine itself; and the resources that extenders manage
    "scheduler_name schedulerName driver attacher provisioner program run resources unchecked "
    # devices: what claims select by
    "deviceClassName expression matchAttribute distinctAttribute extendedResourceName string version "
    "bindingConditions bindingFailureConditions "
    # versions and amounts
    "resourceVersion resource_version maximumVolumeSize"
)
"""Fields whose texts stay, and lists of texts."""
_STAY_BELOW: Final = _names(
    "requests limits capacity allocatable allocatedResources overhead minResources consumedCapacity counters drivers"
)
"""Amounts by resource, and the drivers of a CSINode."""
_LABELS: Final = frozenset({"labels", "annotations", "nodeSelector", "matchLabels", "selector", "opaque"})
"""Maps whose keys are anybody's: no value stays on account of its key."""
_ANNOTATIONS_THAT_STAY: Final = frozenset(
    {
        "storage.alpha.kubernetes.io/migrated-plugins",
        "pv.kubernetes.io/provisioned-by",
        "volume.kubernetes.io/storage-provisioner",
    }
)
_NAMED_BY: Final = frozenset({"disruptedPods", "victims", "pods", "refused", "unresolvable", "scores"})
_NAMED_PLAINLY: Final = frozenset({"CSIDriver", "DeviceClass"})
"""Kinds whose names stand in names of resources, or are those of drivers."""


class Redaction:
    """Hides the texts of one recording, or of all those with the same key."""

    def __init__(self, key: bytes) -> None:
        """`key`: without it nobody can try which text a hash belongs to."""
        self._key = blake2b(key, digest_size=32).digest()
        self._words = frozenset(_WORDS.split())
        self._cached: Hide = lru_cache(1 << 16)(partial(_hidden, self._word))

    def hidden(self, text: str) -> str:
        """A text as it is written."""
        return self._cached(text)

    def written(self, entry: bytes) -> bytes:
        """What goes into an entry, as it is written."""
        return _encode(_walked(_decode(entry), self._cached))

    def asked(self, actions: bytes) -> bytes:
        """Actions as they are written."""
        return _actions(actions, self._cached)

    def show(self, text: str) -> Callable[[bytes], bytes] | None:
        """From now on the words stay that a policy's text has between quotes. Where some were hidden until now, the
        answer makes anew what was written so."""
        more = {word for quoted in _QUOTED.findall(text) for word in _WORD.findall(quoted)}
        shown = {self._word(word): word for word in more - self._words}
        if not shown:
            return None
        self._words |= more
        self._cached = lru_cache(1 << 16)(partial(_hidden, self._word))
        pattern = "|".join(sorted(shown))
        begins = re.compile(pattern.encode())
        word = partial(re.compile(pattern).sub, lambda found: shown[found[0]])
        return lambda written: (
            _encode(_with_texts(_decode(written), word)) if begins.search(written) is not None else written
        )

    def _word(self, word: str) -> str:
        if word in self._words:
            return word
        digest = blake2b(word.encode(errors="surrogatepass"), key=self._key, digest_size=7).digest()
        return "x" + b32encode(digest).decode().rstrip("=").lower()


class UnusableKey(ValueError):
    """A file that is no key; the message says why."""


def redaction(key_file: Path | None) -> Redaction:
    """With the key that a file holds, or a random one that nobody keeps. Raises `UnusableKey`."""
    if key_file is None:
        return Redaction(token_bytes(32))
    try:
        key = regular_file.read(key_file, LONGEST_KEY)
    except OSError as error:
        raise UnusableKey(f"cannot read the key `{key_file}`: {regular_file.reason(error)}") from None
    if len(key) < SHORTEST_KEY:
        raise UnusableKey(f"the key `{key_file}` has {len(key)} bytes, {SHORTEST_KEY} at least: openssl rand 32 > FILE")
    return Redaction(key)


def without_texts(actions: bytes) -> bytes:
    """Actions of a core that plays a redacted recording, as they are compared with what was written."""
    return _actions(actions, str)


def _hidden(of_word: Hide, text: str) -> str:
    if not text or _STAYS.fullmatch(text):
        return text
    if len(text) > LONGEST:
        return of_word(text)
    return _WORD.sub(lambda found: of_word(found[0]), text)


def _actions(written: bytes, hide: Hide) -> bytes:
    found: list[tuple[str, dict[str, Any]]] = _decode(written)
    asked = []
    for name, fields in found:
        if name in ("RecordEvent", "Log") or (name == "PatchPodCondition" and fields["nominated_node_name"] is None):
            continue
        asked.append((name, hidden := _fields(fields, hide)))
        if name == "Bind":
            hidden["annotations"] = dict.fromkeys(hidden["annotations"], SENTENCE)
    return _encode(asked) if asked else b""


def _walked(value: Any, hide: Hide) -> Any:
    """A value, hidden in all its parts."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [_walked(one, hide) for one in value]
    return _fields(value, hide) if isinstance(value, dict) else value


def _fields(fields: dict[str, Any], hide: Hide) -> dict[str, Any]:
    found = {name: _field(name, value, hide) for name, value in fields.items()}
    if fields.get("kind") in _NAMED_PLAINLY:
        if "name" in fields:
            found["name"] = fields["name"]
        elif "object" in fields:
            found["object"]["metadata"]["name"] = fields["object"]["metadata"]["name"]
    return found


def _field(name: str, value: Any, hide: Hide) -> Any:
    if isinstance(value, str):
        if name in _SENTENCES:
            return value and SENTENCE
        return value if name in _STAY or name in _STAY_BELOW else hide(value)
    if isinstance(value, list):
        if name in _STAY:
            return [one if isinstance(one, str) else _walked(one, hide) for one in value]
        return value if name == "drivers" else _walked(value, hide)
    if not isinstance(value, dict) or name in _STAY_BELOW:
        return value
    if name in _LABELS and not _is_selector(value):
        return {key: one if key in _ANNOTATIONS_THAT_STAY else _with_texts(one, hide) for key, one in value.items()}
    if name in _NAMED_BY:
        return {hide(key): _walked(one, hide) for key, one in value.items()}
    return _fields(value, hide)


def _is_selector(value: dict[str, Any]) -> bool:
    """Whether it is a selector with operators where a map of labels stands elsewhere."""
    names = ("matchLabels", "matchExpressions", "nodeSelectorTerms")
    return any(isinstance(value.get(name), list | dict) for name in names)


def _with_texts(value: Any, text: Hide) -> Any:
    """A value, all texts in it replaced; keys of maps stay."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [_with_texts(one, text) for one in value]
    return {key: _with_texts(one, text) for key, one in value.items()} if isinstance(value, dict) else value


_decode: Final = msgspec.msgpack.Decoder().decode
_encode: Final = msgspec.msgpack.Encoder().encode
