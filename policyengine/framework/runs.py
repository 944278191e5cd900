"""Pods that come in runs: what one decision hands on to the next.

A streak (`streak`) carries on what was found for a pod to identical ones, kin (`kin`) to those that differ in what few
plugins read. Both are begun beside an ordinary decision, answer as such a one would, and are given up where they
cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from policyengine.framework.cached_column import ColumnCache
from policyengine.framework.changes import Changes
from policyengine.framework.kin import Kin
from policyengine.framework.leaders import Ring
from policyengine.framework.normal_score import Scorer
from policyengine.framework.streak import Streak

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.framework.filtering import Diagnosis
    from policyengine.framework.scoring import NodeScores

PAUSE: Final = 64
"""Identical pods for which no streak is begun where the last one led nowhere."""
KIN_PAUSE: Final = 16
"""Pods for which no kin are, likewise; they save more where they go well."""
WORTH: Final = 4
"""Pods that pay for the beginning."""


class Runs:
    """The streak and the kin of one evaluator."""

    def __init__(self, filters: Sequence[ColumnCache], scorers: Sequence[Scorer], ring: Callable[[], Ring]) -> None:
        self._filters, self._scorers, self._ring = filters, scorers, ring
        self._shape: object = None
        """Of the last pod chosen for."""
        self._alike = 0
        """How many pods in a row had it."""
        self._streak: Streak | None = None
        self._streak_pause = 0
        self._kin: Kin | None = None
        self._kin_pause = 0
        self._varying: set[str] = set()
        """Names of plugins that kin ask anew because their signature is seldom the same."""

    def begin(self, pod: PodInfo, changes: Changes, diagnosis: Diagnosis, node_scores: NodeScores) -> None:
        """Carry on from a pod just judged and ranked: with a streak where it is the second of its shape, with kin where
        it is another than the one before."""
        is_first, is_again = self._shape is None, pod.shape is self._shape
        self._note(pod)
        parts = (self._filters, self._scorers, pod, changes, diagnosis, node_scores, self._ring)
        if is_again and self._streak_pause:
            self._streak_pause -= 1
        elif is_again:
            self._streak = Streak.begin(*parts)
            self._streak_pause = 0 if self._streak is not None else PAUSE
        elif self._kin_pause:
            self._kin_pause -= 1
        elif not is_first:
            self._kin = Kin.begin(*parts, self._varying)
            self._kin_pause = 0 if self._kin is not None else KIN_PAUSE

    def next(self, pod: PodInfo, changes: Changes) -> int | None:
        """The row that judging and node_scores would come to; None where that is not known."""
        row = self._next_of_streak(pod, changes)
        if row is None and not self._is_worth_a_streak(pod):
            row = self._next_of_kin(pod, changes)
        if row is not None:
            self._note(pod)
        return row

    def _note(self, pod: PodInfo) -> None:
        if pod.shape is self._shape:
            self._alike += 1
        else:
            self._shape, self._alike, self._streak_pause = pod.shape, 1, 0

    def _is_worth_a_streak(self, pod: PodInfo) -> bool:
        return pod.shape is self._shape and self._alike >= WORTH and not self._streak_pause

    def _next_of_streak(self, pod: PodInfo, changes: Changes) -> int | None:
        streak = self._streak
        if streak is None:
            return None
        row = streak.next(pod, changes)
        if row is None:
            self._streak = None
            if streak.length < WORTH:
                self._streak_pause = PAUSE
        return row

    def _next_of_kin(self, pod: PodInfo, changes: Changes) -> int | None:
        kin = self._kin
        if kin is None:
            return None
        row = kin.next(pod, changes)
        if row is None:
            self._kin = None
            if kin.length < WORTH:
                self._kin_pause = KIN_PAUSE
        return row
