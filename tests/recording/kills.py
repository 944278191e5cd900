"""Schedulers that record, killed at random moments: `python -m tests.recording.kills [KILLS] [SEED]`, 200 unless told.

Each tells, once a frame is written, how many there are. Killed by SIGKILL, it has to have left so many, and no damage.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from random import Random

from policyengine.recording.directory import Limits, files
from policyengine.recording.replay import Replay
from policyengine.recording.segment import SegmentReader
from tests.recording.recordings import Recorded

KILLS = 200
SMALL = Limits(file_size=20_000)
"""Files that are followed by others after some frames: a kill may come between two."""


def records(path: Path) -> None:
    """Record for ever, and tell of each frame."""
    one, frames = Recorded(path, limits=SMALL), 0

    def write() -> None:
        nonlocal frames
        one.write()
        frames += 1
        print(frames, flush=True)
        if one.directory.is_due(0.0):
            one.new_file()

    one.play(0, 1_000_000, write)


def killed(path: Path, seed: int) -> str:
    """What is wrong with what a scheduler left that was killed; empty where nothing is."""
    wanted = Random(seed).randrange(1, 120)
    told = 0
    command = [sys.executable, "-m", "tests.recording.kills", "--records", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        with closing(child.stdout) as said:
            while told < wanted:
                told = int(said.readline())
            child.kill()
            told = max([told, *map(int, said.read().split()[:-1])])
    frames = 0
    for one in files(path):
        with one.open("rb") as file:
            frames += sum(1 for _ in SegmentReader(file, one.name).frames())
    if frames < told:
        return f"seed {seed}: {told} frames were written, {frames} are left"
    replay = Replay(path)
    replay.play()
    if replay.difference is not None or not replay.cut_only:
        return f"seed {seed}: {replay.difference}, {replay.notes}"
    return ""


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--records"]:
        records(Path(arguments[1]))
        return 0
    kills, first = (int(text) for text in (*arguments, *("200", "0")[len(arguments) :]))
    wrong = 0
    for seed in range(first, first + kills):
        with tempfile.TemporaryDirectory() as folder:
            if found := killed(Path(folder), seed):
                wrong += 1
                print(found, flush=True)
        if (seed - first + 1) % 50 == 0:
            print(f"{seed - first + 1} kills", flush=True)
    print(f"{kills} kills, {wrong} that lost something")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
