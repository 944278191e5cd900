"""Messages as bytes and back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from policyengine.cluster.demand_history import SavedHistory
from policyengine.cluster.kinds import WATCHED
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.framework.reservation import ObjectPatch
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import default_profile
from policyengine.plugins.selectors.label_selector import Requirement
from policyengine.policy_compiler import compile_files, compile_policy
from policyengine.recording.encoding import Decoder, Encoder, UnreadableEntry, read_entry
from policyengine.scheduler import messages as m
from policyengine.scheduler.actions import (
    AskAboutVictims,
    AskExtenders,
    Bind,
    DeleteVictim,
    NodeVictims,
    PatchObject,
    ReadNodePods,
    ReadPod,
    RecordEvent,
)
from policyengine.scheduler.rollout import Budget, Mode, RolloutSettings

POD = decode(
    Pod,
    {
        "metadata": {"name": "a", "namespace": "d", "uid": "u1", "labels": {"app": "x"}, "resourceVersion": "7"},
        "spec": {
            "schedulerName": "batch",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m", "memory": 1024, "gpu": 1.5}}}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
        },
        "status": {"phase": "Pending"},
    },
)
NODE = decode(Node, {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}})
EVENT = RecordEvent("u1", "d", "a", "7", "Normal", "Preempted", "Preempting", "because", "batch")
VICTIM = DeleteVictim("u1", "d", "a", "u2", "message", 3, EVENT)
PATCH = PatchObject(
    "u1", 2, "VolumeBinding", ObjectPatch("PersistentVolume", "", "pv", "u", "5", {"spec": {"x": None}})
)
ASKED = AskExtenders("u1", "d", "a", 4, (0, 1), ("n", "o"))
VICTIMS = AskAboutVictims("u1", "d", "a", 4, (0,), {"n": NodeVictims(("u2",), 1)}, {"n": {"u2": ("d", "b")}})
SETTINGS = RolloutSettings(
    Mode.CANARY, 0.5, 0.25, (Requirement("team", "In", frozenset({"a", "b"})),), Budget(unschedulable=0.1, window=60.0)
)
PROFILE = compile_policy('policy "p" {\n  scheduler "batch"\n}')

MESSAGES: list[m.Message] = [
    m.NodeObserved(NODE),
    m.NodeObserved(NODE, anew=True),
    m.NodeDeleted("n"),
    m.PodObserved(POD),
    m.PodDeleted("d", "a", "u1"),
    m.ObjectDeleted("Service", "d", "s"),
    m.DemandRemembered(SavedHistory(until=5.0, recent=("u1",))),
    m.CacheSynced(),
    m.CacheLost(),
    m.ProfileRemoved("batch"),
    m.CandidateRemoved("batch"),
    m.BindSucceeded("u1"),
    *(m.BindFailed("u1", failure, "no", 1.5) for failure in m.BindFailure),
    m.BindUnknown("u1", "lost"),
    m.ObjectPatched(PATCH, "6"),
    m.ObjectPatchFailed(PATCH, m.BindFailure.CONFLICT, "409"),
    m.VictimDeleted(VICTIM, was_there=False),
    m.VictimNotDeleted(VICTIM, "403"),
    m.ExtendersAnswered(ASKED, {"o": ("http://e", "full")}, {}, {"n": 30}),
    m.VictimsAnswered(VICTIMS, {"n": NodeVictims(("u2",), 0)}, "late"),
    m.PodRead(ReadPod("u1", "d", "a", 3.25), POD),
    m.ReadPodFailed("u1", 2.0),
    m.NodePodsRead(ReadNodePods("n"), (POD, POD)),
    m.ReadNodePodsFailed(ReadNodePods("n"), 2.0),
    m.Tick(),
    m.CyclesRequested(16),
    m.ComparisonRequested(0.001),
    m.ComparisonTimed(0.002),
]


def again(*given: m.Message) -> list[m.Message | None]:
    """The messages as they come back."""
    encoder, decoder = Encoder(), Decoder()
    found = []
    for message in given:
        if isinstance(message, m.ProfileReplaced | m.CandidateLoaded) and (text := encoder.policy(message.profile)):
            assert decoder.message(read_entry(text)) is None
        found.append(decoder.message(read_entry(encoder.entry(1.0, message, encoder.body(message)))))
    return found


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_a_message_comes_back_as_it_was(message: m.Message) -> None:
    assert again(message) == [message]


def test_objects_of_every_kind_come_back_as_they_were() -> None:
    for kind in WATCHED.values():
        seen = decode(
            kind.type, {"metadata": {"name": "x", "namespace": "y", "resourceVersion": "3"}, **_least(kind.kind)}
        )
        message = m.ObjectObserved(kind.kind, seen)
        assert again(message) == [message], kind.kind


def test_an_object_of_an_older_version_comes_back_in_that_version() -> None:
    kinds = [kind for kind in WATCHED.values() if kind.older]
    assert kinds
    for kind in kinds:
        for older in kind.older:
            seen = decode(older.type, {"metadata": {"name": "x", "namespace": "y"}})
            (found,) = again(m.ObjectObserved(kind.kind, seen))
            assert isinstance(found, m.ObjectObserved)
            assert (found.object, type(found.object)) == (seen, older.type)


def _least(kind: str) -> dict[str, Any]:
    """What an object of the kind cannot be read without."""
    return {"provisioner": "p"} if kind == "StorageClass" else {}


def test_every_message_there_is_is_among_these() -> None:
    loaded = {"ProfileReplaced", "CandidateLoaded", "ObjectObserved"}
    assert {type(one).__name__ for one in MESSAGES} | loaded == {one.__name__ for one in m.Message.__subclasses__()}


def test_a_policy_is_compiled_again_from_its_files_and_params() -> None:
    text = (
        'policy "p" {\n  scheduler "batch"\n  param least: int = 3\n  filter "f" { require node.podCount < least }\n}'
    )
    profile = compile_files([Source("p.policy", text)], {"least": 5}).profiles[0]
    replaced, candidate = again(m.ProfileReplaced(profile), m.CandidateLoaded(profile, SETTINGS, "too slow"))
    assert isinstance(replaced, m.ProfileReplaced) and isinstance(candidate, m.CandidateLoaded)
    assert replaced.profile.policy_hash == candidate.profile.policy_hash == profile.policy_hash
    assert (candidate.settings, candidate.suspended) == (SETTINGS, "too slow")


def test_kube_schedulers_own_profile_needs_no_text() -> None:
    (found,) = again(m.ProfileReplaced(default_profile()))
    assert isinstance(found, m.ProfileReplaced) and found.profile.name == "default"


def test_a_policy_that_this_version_cannot_compile_is_named() -> None:
    encoder, decoder = Encoder(), Decoder()
    raw = msgspec.msgpack.decode(encoder.policy(PROFILE))
    raw[2]["files"] = {"p.policy": 'policy "p" { nonsense }'}
    decoder.message(read_entry(msgspec.msgpack.encode(raw)))
    with pytest.raises(UnreadableEntry, match="the policy `p` cannot be compiled by this version: "):
        decoder.profile(PROFILE.policy_hash)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xc1", b"\x90", b"\x93\x01\x02\x03", msgspec.msgpack.encode([1.0, "Nobody", {}]),
     msgspec.msgpack.encode([1.0, "BindFailed", {"uid": 3}]), msgspec.msgpack.encode([1.0, "PodObserved", {}])],
)  # fmt: skip
def test_bytes_that_are_no_entry_are_refused(raw: bytes) -> None:
    with pytest.raises(UnreadableEntry):
        Decoder().message(read_entry(raw))


def test_a_time_is_written_where_it_differs_from_the_one_before() -> None:
    encoder = Encoder()
    entries = [read_entry(encoder.entry(now, m.Tick(), encoder.body(m.Tick()))) for now in (1.5, 1.5, 2.5)]
    assert [one.now for one in entries] == [1.5, None, 2.5]


def test_the_digest_is_of_the_actions() -> None:
    first, second, other = Encoder(), Encoder(), Encoder()
    bind = Bind("u1", "d", "a", "n", "h")
    first.asked([bind])
    second.asked([bind])
    other.asked([Bind("u1", "d", "a", "o", "h")])
    assert first.hexdigest() == second.hexdigest() != other.hexdigest()
