"""What hides who runs what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.kinds import BY_KIND
from policyengine.cluster.objects import decode
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.recording.directory import files
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import DirectRecording, Recorder
from policyengine.recording.redaction import SENTENCE, Redaction, UnusableKey, redaction
from policyengine.recording.replay import Replay
from policyengine.recording.segment import SegmentReader
from policyengine.scheduler.messages import (
    CacheSynced,
    NodeObserved,
    ObjectObserved,
    PodObserved,
    ProfileReplaced,
)
from policyengine.trials.trial import Trial
from tests.builders import make_node, make_pod
from tests.fuzz.histories import policy_of, tried
from tests.recording.secret_worlds import NOW, POLICY, SECRETS, lived, uid

KEY = Redaction(b"a key")


def played(path: Path) -> Replay:
    replay = Replay(path)
    for _ in replay.steps():
        pass
    return replay


def text_of(path: Path) -> str:
    """Everything in the files, decompressed."""
    found = ""
    for one in files(path):
        with one.open("rb") as file:
            for entries in SegmentReader(file, one.name).frames():
                found += "".join(
                    f"{entry.now} {entry.name} {msgspec.msgpack.decode(entry.body)} {entry.actions!r}\n"
                    for entry in entries
                )
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_redacted_recording_has_no_name_and_decides_the_same(tmp_path: Path, seed: int) -> None:
    trial = lived(tmp_path, seed, KEY)
    replay = played(tmp_path)
    assert (replay.difference, replay.notes, replay.exact) == (None, [], True)
    before = {pod.key: pod.node_name for pod in trial.state.view.pods.values()}
    after = {pod.key: pod.node_name for pod in replay.state.view.pods.values()}
    assert after == {KEY.hidden(key): KEY.hidden(name) for key, name in before.items()}
    assert any(before.values())
    told = text_of(tmp_path).lower()
    assert not [word for word in SECRETS if word in told]
    assert "topology.kubernetes.io/zone" in told and "900m" in told and "ssd" in told


def test_a_claim_that_is_allocated_is_allocated_again(tmp_path: Path) -> None:
    """What takes an allocation back is written with it, in words of the API's patches."""
    recording = DirectRecording(tmp_path, "0", "run", Redaction(b"k"))
    trial = Trial([default_profile()], NOW, driven=recording.recorded)
    asked = {"name": "checkout", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    pool = {"name": "vault", "generation": 1, "resourceSliceCount": 1}
    slice_ = {"driver": "gpu", "nodeName": "gpuhall", "pool": pool, "devices": [{"name": "ledger"}]}
    seen: dict[str, Any] = {
        "DeviceClass": {"metadata": {"name": "gpu", "uid": uid(1)}},
        "ResourceSlice": {"metadata": {"name": "vault", "uid": uid(2)}, "spec": slice_},
        "ResourceClaim": {
            "metadata": {"name": "payments", "namespace": "acme", "uid": uid(3)},
            "spec": {"devices": {"requests": [asked]}},
        },
    }
    claimed = [{"name": "fraud", "resourceClaimName": "payments"}]
    pod = make_pod("search", "acme").uid(uid(4)).set("spec.resourceClaims", claimed).build()
    objects = [ObjectObserved(kind, decode(BY_KIND[kind].type, item)) for kind, item in seen.items()]
    trial.see(NodeObserved(make_node("gpuhall").allocatable(cpu="4", pods="9").build()), *objects, PodObserved(pod))
    trial.advance(60.0)
    recording.close()
    replay = played(tmp_path)
    assert (replay.difference, replay.notes, replay.exact) == (None, [], True)
    assert [one.node_name for one in replay.state.view.pods.values()] == [Redaction(b"k").hidden("gpuhall")]
    assert not [word for word in SECRETS if word in text_of(tmp_path)]


@pytest.mark.parametrize("seed", range(12))
def test_generated_policies_decide_the_same_on_hidden_names(tmp_path: Path, seed: int) -> None:
    """UIDs are the pods' names there, and break ties; so these names are shown."""
    written = policy_of(seed)
    if written is None or ".contains(" in written.plain.source.text:
        pytest.skip("no policy from this seed, or one that looks into texts")
    shown = Redaction(b"k")
    shown.show(f'"{" ".join(f"p{number}" for number in range(25))}"')
    recording = DirectRecording(tmp_path, "0", str(seed), shown)
    tried(seed, recording.recorded)
    recording.close()
    replay = played(tmp_path)
    assert (replay.difference, replay.notes, replay.exact) == (None, [], True)


def test_two_recordings_agree_under_one_key_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    one, other = redaction(tmp_path / "key"), redaction(tmp_path / "key")
    assert one.hidden("web-0") == other.hidden("web-0") != redaction(None).hidden("web-0") != "web-0"


@pytest.mark.parametrize(("content", "why"), [(b"short", "has 5 bytes, 16 at least"), (None, "cannot read the key")])
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, content: bytes | None, why: str) -> None:
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(UnusableKey, match=why):
        redaction(tmp_path / "key")


@pytest.mark.parametrize(
    "text",
    ["", "0", "-12.5", "250m", "16Gi", "1e3", "30s", "1h30m", "true", "2026-01-05T18:30:00Z", "default", "kube-system",
     "4f1c2d3e-0000-4000-8000-00000000abcd", "0.0.0.0"],
)  # fmt: skip
def test_numbers_times_and_kubernetes_own_words_stay(text: str) -> None:
    assert KEY.hidden(text) == text


@given(st.text(max_size=40), st.sampled_from("-./:_"), st.text("abcxyz-", max_size=20))
def test_what_is_made_of_names_is_made_of_hidden_names(first: str, between: str, second: str) -> None:
    parts = [KEY.hidden(f"q{first}"), KEY.hidden(f"q{second}")]
    assert KEY.hidden(f"q{first}{between}q{second}") == between.join(parts)
    assert KEY.hidden(f"q{first}") != f"q{first}"


def test_a_text_that_is_no_name_is_hidden_as_a_whole() -> None:
    applied = '{"kind": "Pod", "name": "payments"}' * 20
    assert KEY.hidden(applied).isalnum() and len(KEY.hidden(applied)) < 20


def test_a_sentence_is_left_out_and_a_label_by_any_key_hidden() -> None:
    pod = {"metadata": {"labels": {"type": "payments", "driver": "fraud"}, "name": "web"}, "message": "web is gone"}
    found = msgspec.msgpack.decode(KEY.written(msgspec.msgpack.encode(pod)))
    assert found["message"] == SENTENCE
    assert found["metadata"]["labels"] == {"type": KEY.hidden("payments"), "driver": KEY.hidden("fraud")}


def test_a_policy_that_comes_before_the_first_decision_shows_its_words(tmp_path: Path) -> None:
    """As the policies of ConfigMaps do: after the first nodes."""
    recording = DirectRecording(tmp_path, "0", "run", Redaction(b"k"))
    trial = Trial(
        [],
        NOW,
        driven=recording.recorded,
        listed=[
            (NOW - 1.0, NodeObserved(make_node("ssd-1").build())),
            (NOW - 0.5, ProfileReplaced(compile_policy(POLICY))),
        ],
    )
    trial.settle()
    recording.close()
    assert played(tmp_path).exact
    assert "ssd-" in text_of(tmp_path)


def test_a_policy_that_names_later_what_was_hidden_begins_the_recording_anew(tmp_path: Path) -> None:
    recording = DirectRecording(tmp_path, "0", "run", Redaction(b"k"))
    trial = Trial([], NOW, driven=recording.recorded)
    trial.see(NodeObserved(make_node("ssd-1").build()), NodeObserved(make_node("other").build()))
    trial.see(ProfileReplaced(compile_policy(POLICY)))
    trial.see(NodeObserved(make_node("ssd-1").label("a", "b").build()))
    trial.settle()
    recording.close()
    replay = played(tmp_path)
    assert (replay.difference, replay.notes, replay.exact) == (None, [], False)
    assert replay.state.view.nodes.n == 2
    assert sum(name.startswith("ssd-") for name in replay.state.view.nodes.names) == 1


def test_policies_are_awaited_no_longer_than_half_a_minute() -> None:
    recorder = Recorder(Began("0", "run"), redaction=Redaction(b"k"))
    begun = len(recorder.take())
    recorder.told(NOW, NodeObserved(make_node("a").build()))
    assert recorder.take() == []
    recorder.told(NOW + 31.0, NodeObserved(make_node("b").build()))
    assert len(recorder.take()) == 3  # and the digest
    recorder.told(NOW + 32.0, CacheSynced())
    assert len(recorder.take()) == begun == 2


def test_folders_of_policies_are_not_told(tmp_path: Path) -> None:
    from policyengine.language.diagnostics import Source
    from policyengine.policy_compiler import compile_files

    named = {name: f'policy "{name}" {{ scheduler "{name}" }}' for name in "bcd"}
    texts = {"/home/alice/a.policy": POLICY, "/srv/b.policy": named["b"], "b.policy": named["c"], "../x": named["d"]}
    profiles = compile_files([Source(file, text) for file, text in texts.items()], {}).profiles
    recording = DirectRecording(tmp_path, "0", "run", Redaction(b"k"))
    Trial(profiles, NOW, driven=recording.recorded)
    recording.close()
    assert played(tmp_path).exact
    assert not [word for word in ("alice", "srv") if word in text_of(tmp_path)]
    assert "'a.policy'" in text_of(tmp_path) and "'2/b.policy'" in text_of(tmp_path)
