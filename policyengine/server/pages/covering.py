"""What a policy's own tests see of it, worked out in a process that can be killed: the texts are somebody else's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cachetools import LRUCache

from policyengine.compiler.coverage import Coverage
from policyengine.framework.profile import Profile
from policyengine.kube.limited_work import LimitedWork, NoAnswer, NoProcess
from policyengine.language.diagnostics import Source, has_errors
from policyengine.policy_compiler import checked_files
from policyengine.trials.policy_test import TestedPolicy, in_file_tests, run_tests

if TYPE_CHECKING:
    from policyengine.kube.limited_process import Work  # it needs what Windows lacks

SECONDS: Final = 10.0
"""Of CPU time."""
PATIENCE: Final = 60.0
KEPT: Final = 16


class Covered(NamedTuple):
    """What the tests see."""

    seen: int = 0
    outcomes: int = 0
    tests: int = 0
    missing: Mapping[tuple[str, int], list[str]] = {}
    """(file, line) -> what of that line no test sees."""
    problem: str = ""
    """Why nothing is known; empty where it is."""


class Covering:
    """Asks the process, once for each policy."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[str, str], Covered] = LRUCache(KEPT)
        self._work = LimitedWork(prepared, niceness=10)

    async def of(self, profile: Profile) -> Covered:
        """What the tests in the policy's text see of it."""
        key = profile.policy_hash, profile.name
        if key in self._known:
            return self._known[key]
        try:
            ended = await self._work.ended([dict(profile.loaded_from.files), profile.name], SECONDS, PATIENCE)
        except (NoProcess, NoAnswer, TimeoutError) as error:
            return Covered(problem=f"its tests could not be run: {error or 'no end in time'}")
        finally:
            self.close()
        if ended.by or ended.is_out_of_memory:
            return Covered(problem=f"its tests take more than {SECONDS:g} s, or too much memory")
        seen, outcomes, tests, missing, problem = ended.answer
        found = Covered(seen, outcomes, tests, {(file, line): said for file, line, said in missing}, problem)
        if not problem:
            self._known[key] = found
        return found

    def close(self) -> None:
        """End the process."""
        self._work.close()


def prepared() -> Work:
    """What runs the tests: (files, policy's name) -> the fields of `Covered`."""
    return _covered


def _covered(request: Any) -> Any:
    files, name = request
    policies, findings = checked_files([Source(file, text) for file, text in files.items()])
    policy = next((one for one in policies if one.name == name), None)
    if policy is None or has_errors(findings):
        told = "its text needs plugins or params that are not known here; run `policyengine test --coverage`"
        return 0, 0, 0, [], told
    tests, coverage = in_file_tests(policy), Coverage(policy)
    for _ in run_tests(TestedPolicy(policy, tests), coverage=coverage):
        pass
    missing: dict[tuple[str, int], list[str]] = {}
    sources = {file: Source(file, text) for file, text in files.items()}
    for point in coverage.points:
        if point.missing:
            file = point.file or policy.source.file
            line = sources[file].line_column(point.span.start)[0]
            missing.setdefault((file, line), []).append(f"{point.what}: {', '.join(point.missing)}")
    return *coverage.outcomes(), len(tests), [(*place, said) for place, said in missing.items()], ""
