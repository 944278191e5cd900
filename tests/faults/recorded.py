"""What a world's schedulers were told, as recordings; where a world fails, cut down to what still shows it.

`python -m tests.faults.recorded FILE` says what is wrong with the core that is told so.

A core is told what it was told there, its invariants checked after each message. Where it does not end by that, the
auditor reads what it was told as if that were all there is, and what it asked for; then it is left in peace, and
everything it asks for is done. So a fault is found again that lies in the core. One that lies beside it, in what sends
and watches, is not: what the cores were told is kept as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.recording.recorder import Recorder
from policyengine.recording.segment import MAGIC, SegmentWriter
from policyengine.recording.shrink import Line, Shown, Shrinking, Told
from policyengine.scheduler.actions import Action, Bind, DeleteVictim, ReadPod
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    CacheLost,
    Message,
    NodeDeleted,
    NodeObserved,
    PodDeleted,
    PodObserved,
    PodRead,
    ProfileReplaced,
)
from policyengine.scheduler.state import SchedulerState
from policyengine.trials.trial import Trial
from tests.faults.auditor import STRANGER, Auditor
from tests.faults.facts import Json
from tests.faults.knowledge import Call, Policy
from tests.faults.last_look import LastLook
from tests.scheduler import invariants

FOLDER = Path(__file__).parents[2] / "build" / "failed"
MOST = 150_000
"""Messages that are played to cut one recording down: seconds."""
PEACE = 90.0
"""Seconds: longer than any backoff, and than a binding may take; shorter than what the periodic flush makes good."""
WHO = "scheduler"
STATUSES = {BindFailure.NOT_FOUND: 404, BindFailure.REFUSED: 403, BindFailure.OVERLOADED: 503}
OPEN: Mapping[str, type[Action]] = {one.__name__: one for one in (Bind, DeleteVictim, ReadPod)}
"""What is answered in peace."""
NOT_SAID = "no reason is stated"
"""Of the cluster: where the core said it, and nobody was told to write it."""
ALLOWED = b"\xc3"
NEWEST = 10**12
"""Above all versions of a world."""
ONLY_NODE = re.compile(r'require node\.name == "([^"]*)"')


class CheckedState(SchedulerState):
    """A core whose invariants are checked after every message."""

    def handle(self, message: Message, now: float) -> list[Action]:
        actions = super().handle(message, now)
        invariants.validate(self)
        return actions


def cache_of(state: SchedulerState) -> Json:
    """What a core believes, as the auditor compares it."""
    view = state.view
    nodes = {}
    for row, name in enumerate(view.nodes.names):
        node = view.nodes.objects[row]
        nodes[name] = (millicores(node.status.allocatable.get("cpu", "0")), bool(node.spec.unschedulable))
    return {
        "pods": {uid: pod.node_name for uid, pod in view.pods.items()},
        "nodes": nodes,
        "held": [uid for uid in view.pods if state.place(uid) == "waiting at permit"],
    }


def millicores(text: object) -> int:
    text = str(text)
    return int(text.removesuffix("m")) if text.endswith("m") else int(float(text) * 1000)


# ---- keeping


def kept(recorder: Recorder, name: str) -> str:
    """Write a recording, cut down to what shows a fault if it does; a line that says where it is, and what it shows."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    writer = SegmentWriter()
    whole = MAGIC + b"".join(writer.frame(entries) for entries in iter(recorder.take, []))
    path = FOLDER / f"{name}-{blake2b(whole, digest_size=4).hexdigest()}.recording"
    path.write_bytes(whole)
    try:
        return f"{path}: {_cut_down(path)}"
    except Exception as error:
        # This runs while a test is failing, on what made it fail: whatever comes of it, the first failure is told.
        return f"{path}: whole, since it cannot be judged: {type(error).__name__}: {error}"


def _cut_down(path: Path) -> str:
    told = read(path)
    objections = wrong(told, told.lines)
    if not objections:
        return f"{len(told.lines):,} messages; the core does right by what it was told"
    target = objections[0]
    fewest = Shrinking(told, lambda lines, shown: target in _wrong(told, lines, shown), most=MOST).fewest()
    told.write(fewest, path, differs=False)
    return f"{len(fewest):,} of {len(told.lines):,} messages; {target}"


def read(path: Path) -> Told:
    """What a recording has, for a core that is checked if that is what fails."""
    checked = Told.of(path, core=CheckedState)
    return checked if checked.played(checked.lines).failed else Told.of(path)


def wrong(told: Told, lines: Sequence[Line]) -> list[str]:
    """What is wrong with a core that is told so."""
    return _wrong(told, lines, told.played(lines))


def _wrong(told: Told, lines: Sequence[Line], shown: Shown) -> list[str]:
    if shown.failed:
        return [f"it ends with {shown.failed}"]
    if not lines:
        return []
    serves = {
        line.message.profile.scheduler_name: _policy(line.message)
        for line in lines
        if isinstance(line.message, ProfileReplaced)
    }
    auditor = Auditor(verifies=told.began.verifies_bindings)
    asked = [
        answer if isinstance(line.message, str) else _actions(answer)
        for line, answer in zip(lines, shown.asked, strict=True)
    ]
    tape = Tape()
    auditor.read(tape.of(lines, asked))
    found = [one.rpartition(" (at ")[0] for one in auditor.objections]
    try:
        return found + _in_peace(tape, lines[-1].now, shown.state, serves)
    except Exception as error:  # of the core under test, which is what is judged: any failure is a finding
        return [*found, f"left in peace it ends with {type(error).__name__}: {error}"]


def _policy(loaded: ProfileReplaced) -> Policy:
    text = "\n".join(loaded.profile.loaded_from.files.values())
    nodes = ONLY_NODE.findall(text)
    return Policy(loaded.profile.scheduler_name, frozenset(nodes) if nodes else None)


def _actions(written: bytes) -> list[tuple[str, Json]]:
    return msgspec.msgpack.decode(written, type=list[tuple[str, Json]]) if written else []


# ---- judging


class Tape:
    """What one core was told and asked for, as the auditor reads it: the cluster is what the core was told of it."""

    def __init__(self) -> None:
        self.pods: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self._decided: dict[str, Json] = {}
        """UID -> the binding that was asked for last."""
        self._sent: dict[str, Call] = {}
        self.open: dict[tuple[str, str], Json] = {}
        """(action, UID) -> what was asked for and not answered."""

    def of(self, lines: Sequence[Line], asked: Sequence[Any]) -> Iterator[tuple[float, str, Any]]:
        """`asked`: by line, the actions, or whether a binding stood."""
        for line, actions in zip(lines, asked, strict=True):
            if isinstance(line.message, str):
                if actions == ALLOWED and line.message in self._decided:
                    yield line.now, "sent", self._call(self._decided[line.message])
                continue
            for what, details in self._told(line.message):
                yield line.now, what, details
            for name, fields in actions:
                if name in OPEN:
                    self.open[name, fields["uid"]] = fields
                if name == "Bind":
                    self._decided[fields["uid"]] = fields
                    yield line.now, "decision", (fields["uid"], fields["node"], fields["policy_hash"])

    def _named(self, namespace: str, name: str) -> list[str]:
        """UIDs of the pods of a name."""
        meta = ((uid, pod["metadata"]) for uid, pod in self.pods.items())
        return [uid for uid, one in meta if (one["namespace"], one["name"]) == (namespace, name)]

    def _call(self, bind: Json) -> Call:
        path = f"/api/v1/namespaces/{bind['namespace']}/pods/{bind['name']}/binding"
        body = {"metadata": {"name": bind["name"], "uid": bind["uid"]}, "target": {"name": bind["node"]}}
        self._sent[bind["uid"]] = call = Call(WHO, "POST", path, body)
        return call

    def _told(self, message: Message) -> Iterator[tuple[str, Any]]:
        if asked := getattr(message, "asked", None):
            self.open.pop((type(asked).__name__, getattr(asked, "uid", "")), None)
        match message:
            case PodObserved(pod, anew):
                for uid in self._named(pod.metadata.namespace, pod.metadata.name):
                    older = anew or _version(self.pods[uid]) < int(pod.metadata.resource_version)
                    if uid != pod.metadata.uid and older:
                        yield from self._gone(self.pods, "Pod", uid)
                yield from self._seen(self.pods, "Pod", pod.metadata.uid, pod, anew)
            case PodRead(_, pod):
                yield from self._seen(self.pods, "Pod", pod.metadata.uid, pod, False)
            case NodeObserved(node, anew):
                yield from self._seen(self.nodes, "Node", node.metadata.name, node, anew)
            case PodDeleted(namespace, name, uid):
                for found in self._named(namespace, name):
                    if uid in ("", found):
                        yield from self._gone(self.pods, "Pod", found)
            case NodeDeleted(name):
                if name in self.nodes:
                    yield from self._gone(self.nodes, "Node", name)
            case CacheLost():
                yield "restored", (self.pods, self.nodes, {})
            case BindSucceeded(uid) | BindFailed(uid) | BindUnknown(uid):
                yield from self._answered(uid, message)

    def _seen(self, table: dict[str, Json], kind: str, key: str, item: Any, anew: bool) -> Iterator[tuple[str, Any]]:
        shown: Json = msgspec.to_builtins(item)
        known = table.get(key)
        if known is None or anew or _version(known) < _version(shown):
            table[key] = shown
            yield "write", _written(kind, item.metadata.name, known, shown)
        if not anew:
            yield "shown", (WHO, f"{kind.lower()}s", "MODIFIED", shown)
            return
        yield "restored", (self.pods, self.nodes, {})
        for what, some in (("pods", self.pods), ("nodes", self.nodes)):
            for one in some.values():
                yield "shown", (WHO, what, "MODIFIED", one)

    def _gone(self, table: dict[str, Json], kind: str, key: str) -> Iterator[tuple[str, Any]]:
        known = table.pop(key)
        meta = {**known["metadata"], "resourceVersion": str(_version(known) + 1)}
        yield "write", _written(kind, meta["name"], known, None)
        yield "shown", (WHO, f"{kind.lower()}s", "DELETED", {**known, "metadata": meta})

    def _answered(self, uid: str, answer: Message) -> Iterator[tuple[str, Any]]:
        self.open.pop((Bind.__name__, uid), None)
        call = self._sent.pop(uid, None)
        if call is None:
            return
        call.status = 201
        if isinstance(answer, BindFailed):
            call.status, call.retry_after = STATUSES.get(answer.failure, 409), answer.retry_after
        elif isinstance(answer, BindUnknown):
            call.status = 0
        known = self.pods.get(uid)
        if call.status == 201 and known is not None and not known["spec"].get("nodeName"):
            self.pods[uid] = bound = {**known, "spec": {**known["spec"], "nodeName": call.body["target"]["name"]}}
            yield "write", _written("Pod", call.body["metadata"]["name"], known, bound, "binding", WHO)
        yield "answered", call


def _version(item: Json) -> int:
    return int(item["metadata"]["resourceVersion"])


def _written(
    kind: str, name: str, before: Json | None, after: Json | None, subresource: str = "", by: str = STRANGER
) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, name=name, before=before, after=after, subresource=subresource, user_agent=by)


def _in_peace(tape: Tape, now: float, state: SchedulerState, serves: Mapping[str, Policy]) -> list[str]:
    """What is wrong in the end, where nothing happens any more and everything is done that is asked for."""
    trial = Trial([], now, driven=lambda _: state)
    trial.state, cluster = state, trial.cluster
    state.listen(trial._told)
    cluster._version = NEWEST
    cluster.pods = {uid: decode(Pod, pod) for uid, pod in tape.pods.items()}
    cluster.nodes = {name: decode(Node, node) for name, node in tape.nodes.items()}
    trial._asked += [msgspec.convert(fields, OPEN[name]) for (name, _), fields in tape.open.items()]
    trial.advance(PEACE)
    pods = {uid: msgspec.to_builtins(pod) for uid, pod in cluster.pods.items()}
    found: list[str] = []
    look = LastLook(pods, tape.nodes, lambda invariant, what: found.append(f"{invariant}: {what}"))
    look.take(cache_of(state), serves)
    return [one for one in found if NOT_SAID not in one]


def main(arguments: list[str]) -> int:
    told = read(Path(arguments[0]))
    objections = wrong(told, told.lines)
    print("\n".join(objections) or "the core does right by what it was told")
    return int(bool(objections))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
