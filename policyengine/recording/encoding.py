"""Messages and actions as bytes (MessagePack), and back.

An entry is an array:

    [nil, "Began", began]             at the start of a file: which run it belongs to, and how the core was made
    [now, NAME, message]              what the core was told; `now` nil: at the time of the entry before
    [now, NAME, message, actions]     the same, and what it asked for: [NAME, action] each
    ["known", NAME, message]          at the start of a file: the policies that serve, and where the file goes on from
                                      another, what was known already
    [nil, "MayBind", [uid, allowed]]  the runner asked before it posted a binding
    [nil, "Policy", policy]           the text of a policy that later entries name by its hash
    [nil, "Digest", hex]              ends a frame: BLAKE2b, 8 bytes, of all actions since the recording began

A message or an action is a map of its fields, under the names that `scheduler.messages` and `scheduler.actions` have;
an object is as the API writes it, with those fields only that are read.

    encoder = Encoder()
    encoder.entry(1.0, message, encoder.body(message))     # [1.0, "PodDeleted", {"namespace": "default", …}]
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from posixpath import basename
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from policyengine.cluster.kinds import WATCHED
from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import IN_TREE, default_profile
from policyengine.policy_compiler import compile_files
from policyengine.recording.redaction import Redaction
from policyengine.scheduler import messages
from policyengine.scheduler.actions import Action
from policyengine.scheduler.extender import Extender
from policyengine.scheduler.rollout import RolloutSettings

T = TypeVar("T")
KNOWN: Final = "known"
LATEST: Final = 253_402_300_800.0
"""Seconds since the epoch of the year 10000."""
BEGAN, MAY_BIND, POLICY, DIGEST = "Began", "MayBind", "Policy", "Digest"

_MESSAGES: Final[Mapping[str, type[messages.Message]]] = {
    name: value
    for name, value in vars(messages).items()
    if isinstance(value, type) and issubclass(value, messages.Message)
}


_NAMES: Final = {value: msgspec.msgpack.encode(name) for name, value in _MESSAGES.items()}
_THREE, _FOUR, _NIL, _FLOAT = b"\x93", b"\x94", b"\xc0", struct.Struct(">Bd")
"""As MessagePack begins an array of so many, nothing, and a number (0xcb)."""
_ASKED: Final = _THREE + _NIL + msgspec.msgpack.encode(MAY_BIND)
_PARTS: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_NOW: Final = msgspec.msgpack.Decoder(float | str | None)
_DECODERS: Final[dict[type[Any], msgspec.msgpack.Decoder[Any]]] = {}
_NAME: Final = msgspec.msgpack.Decoder(str)


class UnreadableEntry(ValueError):
    """Bytes that are no entry of this version."""


class RecordedPolicy(msgspec.Struct, frozen=True):
    """A policy as it was loaded: the files that were loaded together, and the values given for params."""

    name: str
    hash: str
    files: dict[str, str]
    params: dict[str, Any] = {}


class Began(msgspec.Struct, frozen=True):
    """How a file begins."""

    program: str
    """The version of policyengine that wrote it."""
    run: str
    """Tells the runs of a process apart: files of one run belong together."""
    continues: bool = False
    """Whether a file of the same run came before."""
    at: float = 0.0
    """When what was known is told."""
    extenders: tuple[Extender, ...] = ()
    verifies_bindings: bool = False
    """As `SchedulerState` was made."""
    watched_only: bool = False
    """Whether nothing was decided: a cluster was watched, whoever schedules it."""
    redacted: bool = False
    """Whether texts were hidden (`redaction`): of actions no sentence is written."""


class _Object(msgspec.Struct, frozen=True):
    kind: str
    object: msgspec.Raw
    """Where it is written, the object itself."""
    anew: bool = False
    form: str = ""
    """The struct's name, where the object is of an older version of its kind."""


class _Loaded(msgspec.Struct, frozen=True):
    """A `ProfileReplaced` or `CandidateLoaded`, its policy by its hash."""

    policy: str
    settings: RolloutSettings | None = None
    suspended: str = ""


def _object(message: messages.ObjectObserved) -> _Object:
    form = type(message.object)
    older = "" if form is WATCHED[message.kind].type else form.__name__
    return _Object(message.kind, cast(Any, message.object), message.anew, older)


_FORMS: Final[Mapping[type[messages.Message], Callable[[Any], msgspec.Struct]]] = {
    messages.ProfileReplaced: lambda message: _Loaded(message.profile.policy_hash),
    messages.CandidateLoaded: lambda message: _Loaded(message.profile.policy_hash, message.settings, message.suspended),
    messages.ObjectObserved: _object,
}
"""Of messages that are not written as they are."""


ABOUT: Final[Mapping[type[messages.Message], Callable[[Any], tuple[str, str, str]]]] = {
    messages.PodObserved: lambda told: ("Pod", told.pod.metadata.namespace, told.pod.metadata.name),
    messages.PodDeleted: lambda told: ("Pod", told.namespace, told.name),
    messages.NodeObserved: lambda told: ("Node", "", told.node.metadata.name),
    messages.NodeDeleted: lambda told: ("Node", "", told.name),
    messages.ObjectObserved: lambda told: (told.kind, told.object.metadata.namespace, told.object.metadata.name),
    messages.ObjectDeleted: lambda told: (told.kind, told.namespace, told.name),
}
"""Of messages that show an object, or say that it is gone: its kind, namespace and name."""


def message_types() -> dict[str, type[Any]]:
    """By name, what messages are written as."""
    loaded = {one.__name__: _Loaded for one in (messages.ProfileReplaced, messages.CandidateLoaded)}
    own = {name: kind for name, kind in _MESSAGES.items() if kind is not messages.Message}
    return {**own, **loaded, messages.ObjectObserved.__name__: _Object}


class Entry(NamedTuple):
    """One entry, its contents not read yet."""

    now: float | str | None
    name: str
    body: msgspec.Raw
    actions: bytes
    """As they were written; empty where there were none."""


class Encoder:
    """Writes the entries of one recording, in order."""

    def __init__(self, redaction: Redaction | None = None, asked: Callable[[bytes], bytes] = bytes) -> None:
        """`redaction`: what hides texts. `asked`: what is made of actions otherwise."""
        self._encode = msgspec.msgpack.Encoder().encode
        self._redaction = redaction
        self._asked = asked if redaction is None else redaction.asked
        self._digest = blake2b(digest_size=8)
        self._now: float | None = None
        self._policies: set[str] = set()

    def began(self, began: Began) -> bytes:
        """The first entry of a file: times and policies are written out anew behind it."""
        self._now = None
        self._policies.clear()
        return self._encode([None, BEGAN, msgspec.Raw(self._hidden(self._encode(began)))])

    def body(self, message: messages.Message) -> bytes:
        """A message as it is written."""
        form = _FORMS.get(type(message))
        return self._hidden(self._encode(message if form is None else form(message)))

    def entry(self, now: float, message: messages.Message, written: bytes, asked: bytes = b"") -> bytes:
        """What was told at a time, and what was asked for, as it is written."""
        # Put together by hand, which takes half as long: this is done for whatever a scheduler is told.
        time = _NIL if now == self._now else _FLOAT.pack(0xCB, now)
        self._now = now
        return b"".join((_FOUR if asked else _THREE, time, _NAMES[type(message)], written, asked))

    def policy(self, profile: Profile) -> bytes:
        """The text of a policy that is named for the first time in a file; nothing for another time."""
        if profile.policy_hash in self._policies:
            return b""
        self._policies.add(profile.policy_hash)
        loaded = profile.loaded_from
        files = dict(loaded.files) if self._redaction is None else without_folder(loaded.files)
        policy = RecordedPolicy(profile.name, profile.policy_hash, files, dict(loaded.params))
        return self._encode([None, POLICY, policy])

    def known(self, name: str, written: bytes) -> bytes:
        """An object, or a policy, that was known when a file began."""
        return self._encode([KNOWN, name, msgspec.Raw(written)])

    def may_bind(self, uid: str, allowed: bool) -> bytes:
        """The runner asked, and was told."""
        return _ASKED + self._hidden(self._encode([uid, allowed]))

    def asked(self, actions: Sequence[Action]) -> bytes:
        """Actions as they are written; they count in the digest."""
        encoded = self._asked(self._encode([(type(action).__name__, action) for action in actions]))
        self._digest.update(encoded)
        return encoded

    def digest(self) -> bytes:
        """The entry that ends a frame."""
        return self._encode([None, DIGEST, self.hexdigest()])

    def hexdigest(self) -> str:
        """Of all actions so far."""
        return self._digest.hexdigest()

    def _hidden(self, written: bytes) -> bytes:
        return written if self._redaction is None else self._redaction.written(written)


class Decoder:
    """Reads the entries of one segment, in order."""

    def __init__(self, registry: PluginRegistry = IN_TREE) -> None:
        """`registry`: the plugins that policies may name."""
        self._registry = registry
        self.policies: dict[str, RecordedPolicy] = {}
        """By hash."""
        self._profiles: dict[str, Profile] = {}

    def message(self, entry: Entry) -> messages.Message | None:
        """What the core was told; None where the entry is a note beside. Raises `UnreadableEntry`."""
        try:
            return self._message(entry)
        except (msgspec.MsgspecError, KeyError) as error:
            raise UnreadableEntry(f"an entry `{entry.name}` cannot be read: {error}") from error

    def _message(self, entry: Entry) -> messages.Message | None:
        match entry.name:
            case "Policy":
                policy = _decoder(RecordedPolicy).decode(entry.body)
                self.policies[policy.hash] = policy
                return None
            case "Began" | "MayBind" | "Digest":
                return None
            case "ObjectObserved":
                seen = _decoder(_Object).decode(entry.body)
                newest = WATCHED[seen.kind]
                forms = {one.type.__name__: one.type for one in newest.older}
                form = forms[seen.form] if seen.form else newest.type
                return messages.ObjectObserved(seen.kind, _decoder(form).decode(seen.object), seen.anew)
            case "ProfileReplaced" | "CandidateLoaded":
                loaded = _decoder(_Loaded).decode(entry.body)
                profile = self.profile(loaded.policy)
                if loaded.settings is None:
                    return messages.ProfileReplaced(profile)
                return messages.CandidateLoaded(profile, loaded.settings, loaded.suspended)
        if entry.name not in _MESSAGES:
            raise UnreadableEntry(f"`{entry.name}` is no entry of this version")
        message: messages.Message = _decoder(_MESSAGES[entry.name]).decode(entry.body)
        return message

    def profile(self, policy_hash: str) -> Profile:
        """The policy with this hash, compiled. Raises `UnreadableEntry`."""
        if policy_hash in self._profiles:
            return self._profiles[policy_hash]
        if policy_hash not in self.policies:
            raise UnreadableEntry(f"the policy {policy_hash[:12]} is named before it is written")
        wanted, default = self.policies[policy_hash], default_profile()
        if wanted.hash == default.policy_hash:
            return default
        sources = [Source(file, text) for file, text in wanted.files.items()]
        made = compile_files(sources, wanted.params, self._registry)
        found = next((one for one in made.profiles if one.name == wanted.name), None)
        if found is None:
            why = made.diagnostics[0].message if made.diagnostics else "its text was not recorded"
            raise UnreadableEntry(f"the policy `{wanted.name}` cannot be compiled by this version: {why}")
        self._profiles[policy_hash] = found
        return found


def without_folder(files: Mapping[str, str]) -> dict[str, str]:
    """Texts by the names of their files alone; one that comes again has a number before it."""
    found: dict[str, str] = {}
    for number, (file, text) in enumerate(files.items()):
        name = basename(file)
        found[f"{number}/{name}" if name in found else name] = text
    return found


def read_entry(raw: bytes | msgspec.Raw) -> Entry:
    """Raises `UnreadableEntry`."""
    try:
        now, name, *rest = _PARTS.decode(raw)
        entry = Entry(_NOW.decode(now), _NAME.decode(name), rest[0], bytes(rest[1]) if len(rest) > 1 else b"")
    except (msgspec.MsgspecError, ValueError, IndexError) as error:
        raise UnreadableEntry(f"bytes that are no entry: {error}") from error
    if entry.now not in (None, KNOWN) and not (isinstance(entry.now, float) and 0.0 <= entry.now < LATEST):
        raise UnreadableEntry(f"an entry `{entry.name}` is at {entry.now}, which is no time")
    return entry


def _decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]:
    if kind not in _DECODERS:
        _DECODERS[kind] = msgspec.msgpack.Decoder(kind)
    return _DECODERS[kind]
