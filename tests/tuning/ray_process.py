"""`python -m tests.tuning.ray_process FOLDER`: tune on a local Ray of two workers, the first of which is killed; prints
what was found. A process of its own, because Ray takes over the output of the one it is in."""

import multiprocessing
import os
import sys
from pathlib import Path

from policyengine.tuning.workers import Ray
from tests.tuning.played import dies_at_first, found, job


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "dies").write_text(str(os.getpid()))
    os.environ["DIES_ONCE"] = str(folder / "dies")
    multiprocessing.cpu_count = lambda: 2
    print(found(job(folder, "p99(wait)", plugins=dies_at_first), lambda work: Ray(work, "local")))


if __name__ == "__main__":
    main()
