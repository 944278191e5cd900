import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from policyengine.tuning.judging import Job, Task, Workload, judge
from policyengine.tuning.objective import objective
from policyengine.tuning.session import NothingToChoose
from policyengine.tuning.tuned_policy import Subject
from policyengine.tuning.workers import Processes
from tests.commands.process import ROOT
from tests.tuning.played import found, job, recording, scenario, source
from tests.waiting import asked_until

pytest.importorskip("optuna", reason="Optuna is not installed")


def test_a_filter_that_is_too_narrow_is_opened_and_the_gain_holds_on_a_seed_that_was_held_out(tmp_path: Path) -> None:
    result = found(job(tmp_path, "p99(wait)"))
    assert int(result.best.values["most"]) > 2
    assert result.is_better
    (held,) = result.held_out
    assert held.workload == "s.yaml seed 3"
    assert held.is_now[0] < held.was[0] == held.old["wait"]["p99"]
    assert result.gain is None
    assert max(result.importance, key=lambda name: result.importance[name]) == "most"
    assert [value for value, _ in result.profiles["most"]] == ["1", "21", "40"]
    narrow, *_, wide = [waits for _, waits in result.profiles["most"]]
    assert wide < narrow


def test_processes_and_one_alone_find_the_same(tmp_path: Path) -> None:
    asked = job(tmp_path, "p99(wait)", seeds=4)
    alone = found(asked, trials=6)
    assert found(asked, lambda work: Processes(work, 2), trials=6) == alone
    assert alone.gain is not None


def test_processes_end_with_the_one_that_asked(tmp_path: Path) -> None:
    code = (
        "import os, time\nfrom tests.tuning.played import told_and_sleeps\n"
        "from policyengine.tuning.workers import Processes\n"
        "if __name__ == '__main__':\n"
        "    answers = Processes(told_and_sleeps, 2).answers([%r, %r])\n    next(answers)\n"
    )
    files = [tmp_path / "one", tmp_path / "two"]
    (tmp_path / "asks.py").write_text(code % tuple(map(str, files)))
    asks = subprocess.Popen(
        [sys.executable, str(tmp_path / "asks.py")], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    asked_until(bool, lambda: all(one.exists() and one.read_text() for one in files))
    asks.kill()
    asks.wait()
    asked_until(bool, lambda: not any(_is_alive(int(one.read_text())) for one in files))


def test_ctrl_c_ends_processes_at_work_without_a_traceback(tmp_path: Path) -> None:
    code = (
        "import signal\n"
        "from tests.tuning.played import told_and_sleeps\n"
        "from policyengine.tuning.workers import Processes\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever it was started with\n"
        "    try:\n"
        "        with Processes(told_and_sleeps, 2) as workers:\n            next(workers.as_finished([%r, %r]))\n"
        "    except KeyboardInterrupt:\n        print('stopped')\n"
    )
    files = [tmp_path / "one", tmp_path / "two"]
    (tmp_path / "asks.py").write_text(code % tuple(map(str, files)))
    asks = subprocess.Popen(
        [sys.executable, str(tmp_path / "asks.py")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    asked_until(bool, lambda: all(one.exists() and one.read_text() for one in files))
    os.killpg(asks.pid, signal.SIGINT)
    assert asks.communicate() == ("stopped\n", "")
    assert not any(_is_alive(int(one.read_text())) for one in files)


def _is_alive(process: int) -> bool:
    """Whether it runs; one that has ended, and that nobody has asked about, does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_local_ray_finds_the_same_with_a_worker_killed_on_the_way(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: `make ray` brings it")
    command = [sys.executable, "-m", "tests.tuning.ray_process", str(tmp_path)]
    far = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert far.returncode == 0, far.stderr
    assert not (tmp_path / "dies").exists()
    assert str(found(job(tmp_path, "p99(wait)"))) in far.stdout


def test_a_recording_is_played_as_the_scenario_it_is_of(tmp_path: Path) -> None:
    one, other = Workload(str(scenario(tmp_path)), 5), Workload(str(recording(tmp_path, 5)))
    asked = job(tmp_path, "p99(wait)")
    figures = [
        workload.play(asked.subject.profile({}), asked.subject.plugins, lambda share, so_far: True)
        for workload in (one, other)
    ]
    assert figures[0]["wait"] == figures[1]["wait"]


def test_looks_along_the_way_change_nothing_and_a_limit_ends_the_play(tmp_path: Path) -> None:
    asked = job(tmp_path, "p99(wait)")
    old = [judge(asked, Task({}, [number])).figures[0] for number in (0, 1)]
    whole = judge(asked, Task({"most": "1"}, [0, 1], old))
    assert [one["wait"] for one in whole.figures] == [
        judge(asked, Task({"most": "1"}, [number])).figures[0]["wait"] for number in (0, 1)
    ]
    assert len(whole.steps) == 8 and whole.steps[-1] == pytest.approx(sum(v[0] for v in whole.values) / 2)
    ended = judge(asked, Task({"most": "1"}, [0, 1], old, [0.0] * 8))
    assert ended.stopped and len(ended.steps) < 8
    assert ended.steps == whole.steps[: len(ended.steps)]


def test_constraints_hold_where_it_was_trained_and_are_counted_where_it_was_not(tmp_path: Path) -> None:
    result = found(job(tmp_path, "p99(wait)", constraints=("utilisation.cpu <= 0.9",)))
    assert result.best.broken == 0
    for objectives in (["p99(wait)"], ["p99(wait)", "minimize utilisation.cpu"]):
        with pytest.raises(NothingToChoose, match="keeps the constraints"):
            found(job(tmp_path, *objectives, constraints=("pods < 1",)), trials=2)


def test_two_objectives_have_a_front_and_the_best_is_on_it(tmp_path: Path) -> None:
    result = found(job(tmp_path, "p99(wait)", "minimize utilisation.cpu"), trials=8)
    assert result.best in result.front
    assert len({one.objectives for one in result.front}) > 1


def test_an_objective_that_never_changes_is_told(tmp_path: Path) -> None:
    with pytest.raises(NothingToChoose, match="whatever"):
        found(job(tmp_path, "minimize pods"))


def test_where_nothing_waits_there_is_nothing_to_gain(tmp_path: Path) -> None:
    idle = Subject((source(),), {"most": "40"})
    asked = job(tmp_path, "p99(wait)")
    with pytest.raises(NothingToChoose, match="no pod waits"):
        found(Job(idle, asked.workloads, asked.objectives, ()))


def test_other_policies_of_the_scenario_serve_on(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    path.write_text(
        path.read_text().replace('"policies": [', '"policies": [{"text": "policy \\"o\\" { scheduler \\"o\\" }"}, ')
    )
    asked = Job(Subject((source(),), {}), [Workload(str(path), 1)], [objective("p99(wait)")], ())
    assert judge(asked, Task({}, [0])).figures[0]["pods"] == 30
