"""Every score that kube-scheduler gave, from its log at verbosity 10 of `schedule_one.go`."""

from __future__ import annotations

import re
from pathlib import Path

FLAGS = ("-v=2", "--vmodule=schedule_one=10")
_SCORED = re.compile(rb'"Plugin scored node for pod" pod="([^"]*)" plugin="([^"]*)" node="([^"]*)" score=(-?\d+)')

Scores = dict[str, dict[str, int]]
"""Node -> plugin -> weighted score."""


class ScoreLog:
    """A log that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def take(self, pod: str) -> Scores:
        """What the lines since the last time say of a pod (`namespace/name`); empty where nothing was scored."""
        with self._path.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        self._read += len(text)
        found: Scores = {}
        for about, plugin, node, score in _SCORED.findall(text):
            if about.decode() == pod:
                found.setdefault(node.decode(), {})[plugin.decode()] = int(score)
        return found
