"""A recording beside a scheduler that runs."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from policyengine.clock import SystemClock
from policyengine.kube import record_writer
from policyengine.kube.http.client import Client
from policyengine.kube.record_writer import RecordingUnusable, RecordWriter, watch_cluster
from policyengine.plan.history import read
from policyengine.plugins.registry import default_profile
from policyengine.recording.directory import Limits, RecordingDirectory, files
from policyengine.recording.replay import Replay
from policyengine.scheduler.messages import BindSucceeded, CacheSynced, CyclesRequested, NodeObserved, PodObserved
from policyengine.scheduler.state import SchedulerState
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.builders import make_node, make_pod
from tests.kube.scripted_server import Opened, failure

NOW = 1_767_600_000.0


async def lived(writer: RecordWriter, seconds: int) -> SchedulerState:
    """A scheduler to which something happens each second; what came is written each second."""
    state = SchedulerState([default_profile()])
    async with writer.running():
        core = writer.recorded(state)
        core.handle(CacheSynced(), NOW)
        for second in range(seconds):
            core.handle(NodeObserved(make_node(f"n{second}").allocatable(cpu="1", pods="9").build()), NOW + second)
            core.handle(PodObserved(make_pod(f"p{second}").req(cpu="600m").build()), NOW + second)
            core.handle(CyclesRequested(4), NOW + second)
            await writer.write()
    return state


def played(path: Path) -> Replay:
    replay = Replay(path)
    for _ in replay.steps():
        pass
    return replay


async def test_what_a_scheduler_is_told_is_written_and_read_again(tmp_path: Path) -> None:
    state = await lived(RecordWriter(tmp_path, Limits(), SystemClock(), Random(1)), 5)
    replay = played(tmp_path)
    assert (replay.difference, replay.notes, replay.exact, replay.messages) == (None, [], True, 16)
    assert set(replay.state.view.pods) == set(state.view.pods)


async def test_a_core_that_verifies_its_bindings_is_played_again_as_one(tmp_path: Path) -> None:
    state = SchedulerState([default_profile()], verifies_bindings=True)
    writer = RecordWriter(tmp_path, Limits(), SystemClock(), Random(1))
    async with writer.running():
        core = writer.recorded(state)
        core.handle(CacheSynced(), NOW)
        core.handle(NodeObserved(make_node("n").allocatable(cpu="1", pods="9").build()), NOW)
        core.handle(PodObserved(make_pod("p").build()), NOW)
        core.handle(CyclesRequested(1), NOW)
        core.handle(BindSucceeded("p"), NOW)
    replay = played(tmp_path)
    assert (replay.difference, replay.state.verifies_bindings) == (None, True)


async def test_each_file_but_the_first_begins_with_what_was_known(tmp_path: Path) -> None:
    await lived(RecordWriter(tmp_path, Limits(file_size=1), SystemClock(), Random(1)), 6)
    first, *others = files(tmp_path)
    assert others
    assert played(tmp_path).exact
    first.unlink()
    replay = played(tmp_path)
    assert (replay.difference, replay.exact) == (None, False)
    assert set(replay.state.view.pods) == {f"p{second}" for second in range(6)}


async def test_an_end_in_the_middle_of_a_write_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = RecordingDirectory.write

    def slow(self: RecordingDirectory, entries: Sequence[bytes], now: float) -> None:
        time.sleep(0.05)  # a slow disk
        write(self, entries, now)

    monkeypatch.setattr(RecordingDirectory, "write", slow)
    monkeypatch.setattr(record_writer, "PERIOD", 0.001)
    writer, state = RecordWriter(tmp_path, Limits(), SystemClock(), Random(1)), SchedulerState([default_profile()])
    async with writer.running():
        core = writer.recorded(state)
        for number in range(20):
            core.handle(PodObserved(make_pod(f"p{number}").build()), NOW + number)
            await asyncio.sleep(0.004)
    replay = played(tmp_path)
    assert (replay.messages, replay.difference, replay.notes) == (20, None, [])


async def test_a_full_disk_ends_the_recording_with_one_warning_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = RecordWriter(tmp_path, Limits(), SystemClock(), Random(1))
    frames = 0

    def full(self: RecordingDirectory, entries: Sequence[bytes], now: float) -> None:
        nonlocal frames
        frames += 1
        if frames > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, entries, now)

    write = RecordingDirectory.write
    monkeypatch.setattr(RecordingDirectory, "write", full)
    with caplog.at_level(logging.WARNING):
        state = await lived(writer, 8)
    (warning,) = caplog.messages
    assert warning.startswith(f"the recording in {tmp_path} ends here, all else goes on: ")
    assert "No space left on device" in warning
    assert len(state.view.pods) == 8
    assert frames == 3
    assert played(tmp_path).messages == 7


async def test_a_disk_that_falls_far_behind_ends_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(record_writer, "MOST_WAITING", 100)
    with caplog.at_level(logging.WARNING):
        await lived(RecordWriter(tmp_path, Limits(), SystemClock(), Random(1)), 3)
    assert [one for one in caplog.messages if "wait for the disk" in one] == caplog.messages
    assert len(caplog.messages) == 1


def test_a_directory_that_cannot_be_written_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingUnusable, match="cannot record into"):
        RecordWriter(tmp_path / "file", Limits(), SystemClock(), Random(1))
    kept = RecordWriter(tmp_path / "one", Limits(), SystemClock(), Random(1))
    with pytest.raises(RecordingUnusable, match="is being written by another process"):
        RecordWriter(tmp_path / "one", Limits(), SystemClock(), Random(1))
    del kept


async def test_a_kind_that_may_not_be_listed_leaves_a_recording_without_a_beginning(tmp_path: Path) -> None:
    class WithoutServices(MemoryTransport):
        async def request(self, method: str, path: str, **more: Any) -> Any:
            if path.endswith("/services"):
                return Opened(failure(403, "Forbidden"))
            return await super().request(method, path, **more)

    transport = WithoutServices(ApiServer(SystemClock()))
    await create(transport, "/api/v1/nodes", make_node("n").json())
    writer, stop = RecordWriter(tmp_path, Limits(), SystemClock(), Random(1)), asyncio.Event()
    watching = asyncio.create_task(watch_cluster(Client(transport), SystemClock(), Random(1), writer, stop))
    async with asyncio.timeout(30):
        while not files(tmp_path) or not played(tmp_path).state.view.nodes.n:
            await asyncio.sleep(0.05)
            await writer.write()
    stop.set()
    assert not await watching
    history = read(tmp_path)
    assert history.is_damaged
    assert history.notes == [
        "the recording ends before all that was there was listed: nothing tells when anything came"
    ]


async def test_a_cluster_is_watched_and_nothing_is_asked_of_it(tmp_path: Path) -> None:
    api = ApiServer(SystemClock())
    transport = MemoryTransport(api)
    client = Client(transport)
    await create(transport, "/api/v1/nodes", make_node("n").allocatable(cpu="4").json())
    writer, stop = RecordWriter(tmp_path, Limits(), SystemClock(), Random(1)), asyncio.Event()
    watching = asyncio.create_task(watch_cluster(client, SystemClock(), Random(1), writer, stop))
    await create(transport, "/api/v1/namespaces/default/pods", make_pod("p").json())
    seen: set[str] = set()
    async with asyncio.timeout(30):
        while "PodObserved" not in seen:
            await asyncio.sleep(0.01)
            await writer.write()
            replay = Replay(tmp_path) if files(tmp_path) else None
            seen = set() if replay is None else {type(step.message).__name__ for step in replay.steps()}
    stop.set()
    assert await watching
    replay = played(tmp_path)
    assert replay.began is not None and replay.began.watched_only
    assert not replay.exact
    assert [pod.key for pod in replay.state.view.pods.values()] == ["default/p"]
    assert replay.state.view.nodes.n == 1
