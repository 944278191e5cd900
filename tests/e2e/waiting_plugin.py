"""A filter that waits for a file, as one of a package that asks another program would; see `test_waiting_plugins`."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import Reads
from policyengine.framework.plugin_entry import PluginEntry
from policyengine.framework.status import SUCCESS, Rows, Status, Verdicts

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot

ASKED, GO_ON = "ASKED", "GO_ON"
"""Environment variables: the file that it makes once it is asked, and the one that it waits for."""


class Waiting:
    name = "Waiting"
    reads = Reads.NODE

    def signature(self, pod: PodInfo) -> Hashable:
        return ""

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, None]:
        return SUCCESS, None

    def filter(self, state: None, snapshot: Snapshot, rows: Rows) -> Verdicts:
        Path(os.environ[ASKED]).touch()
        end = time.monotonic() + 60.0
        while not Path(os.environ[GO_ON]).exists() and time.monotonic() < end:
            time.sleep(0.02)
        return Verdicts(np.zeros(len(rows), dtype=np.int16), ())

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return ()


def built(arguments: Any) -> Waiting:
    return Waiting()


WAITING = PluginEntry("Waiting", built, filters=True)
