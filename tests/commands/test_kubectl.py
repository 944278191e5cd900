"""`kubectl policyengine` on a sandbox: as a command of ours, and where there is one as the real kubectl's plugin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from policyengine.commands.explaining import running_scheduler
from policyengine.commands.kubectl import complete
from policyengine.commands.kubectl_tables import age
from policyengine.kube.config.access import AccessDenied
from tests.commands.process import ROOT, kubectl_policyengine, policyengine
from tests.e2e.cluster import process
from tests.waiting import asked_until

POLICY = """policy "teams" {
  scheduler "teams"
  quota "a" when pod.namespace == "default" { guarantee: {cpu: 1} limit: {cpu: 3} borrow: true }
  quota "idle" when pod.namespace == "nobodys" { limit: {memory: 1Gi} }
  queue { fair by pod.labels[?"team"].orValue("none") }
}
"""
LABELS = {"policyengine.io/policy": "true"}
MODE = {"policyengine.io/mode": "shadow"}


def pod(name: str, cpu: str, scheduler: str = "teams") -> tuple[str, dict[str, Any]]:
    spec = {
        "schedulerName": scheduler,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
    }
    return "/api/v1/namespaces/default/pods", {"metadata": {"name": name, "labels": {"team": "red"}}, "spec": spec}


def config_map(name: str, text: str, **annotations: str) -> tuple[str, dict[str, Any]]:
    about = {"name": name, "labels": LABELS, "annotations": annotations}
    return "/api/v1/namespaces/kube-system/configmaps", {"metadata": about, "data": {"p.policy": text}}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A sandbox with a quota, a candidate, a text that is refused, and pods that wait."""
    folder = tmp_path_factory.mktemp("sandbox")
    (folder / "teams.policy").write_text(POLICY)
    sandbox = ("-m", "policyengine.commands.main", "sandbox", "--policy", str(folder / "teams.policy"))
    with process(*sandbox, "--kubeconfig-out", str(folder / "config"), until="Ctrl-C ends it"):
        server = json.loads((folder / "config").read_text())["clusters"][0]["cluster"]["server"]
        for path, body in (
            config_map("broken", 'policy "x" { filtr }'),
            config_map("next", 'policy "next" { scheduler "teams" }', **MODE),
            pod("small", "1500m"),
            pod("big", "2"),
            pod("lost", "1", "temas"),
        ):
            _post(server + path, body)
        yield folder / "config"


def _post(url: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 201


def table(text: str, first: str) -> list[list[str]]:
    """The rows of the table whose first column has this header, by columns."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(first))
    ends = next((number for number in range(start, len(lines)) if not lines[number].strip()), len(lines))
    header = lines[start]
    columns = [header.index(name) for name in header.split()] + [None]
    return [[line[at:until].strip() for at, until in pairwise(columns)] for line in lines[start + 1 : ends]]


def until(kubeconfig: Path, command: str, told: str) -> str:
    def ask() -> str:
        ended = kubectl_policyengine(command, "--kubeconfig", kubeconfig)
        assert ended.code == 0, ended.err
        return ended.out

    return asked_until(lambda said: told in said, ask)


def test_status_tells_what_serves_and_what_was_refused_and_where(kubeconfig: Path) -> None:
    shown = until(kubeconfig, "status", "Shadow")
    assert shown.startswith("leader sandbox_")
    assert shown.splitlines()[0].endswith("lease kube-system/policyengine-sandbox")
    serving = {row[0]: row[1:] for row in table(shown, "SCHEDULER")}
    assert serving["teams"][0] == "teams" and serving["teams"][2] == "file"
    assert len(serving["teams"][1]) == 12
    objects = {row[1]: (row[2], row[4]) for row in table(shown, "KIND")}
    assert objects["kube-system/next"] == ("Shadow", "shadow beside policy `teams` of scheduler `teams`")
    state, message = objects["kube-system/broken"]
    assert state == "Rejected"
    assert message.startswith("line 1, column 14: `filtr` starts no member; did you mean `filter`?")


def test_queue_tells_who_waits_and_why(kubeconfig: Path) -> None:
    shown = until(kubeconfig, "queue", "pod asks for 2")
    rows = {row[0]: row[1:] for row in table(shown, "POD")}
    assert rows["default/big"][:2] == ["teams", "unschedulable"]
    assert "quota a: 1500m of 3 cpu are in use, the pod asks for 2" in rows["default/big"][-1]
    assert rows["default/lost"][:2] == ["temas", "unserved"]
    assert "default/small" not in rows
    elsewhere = kubectl_policyengine("-n", "other", "queue", "--kubeconfig", kubeconfig)
    assert elsewhere.out == "no pod waits\n"


def test_only_leases_of_the_namespace_that_is_named_are_looked_at(kubeconfig: Path) -> None:
    elsewhere, here = {"POLICYENGINE_NAMESPACE": "other"}, ("--scheduler-namespace", "kube-system")
    flags = ("--kubeconfig", kubeconfig)
    assert kubectl_policyengine("quota", *flags, env=elsewhere).code == 3
    assert kubectl_policyengine("quota", "--scheduler-namespace=other", *flags).code == 3
    for given in (("quota", *flags, *here), (*here, "quota", *flags)):
        assert kubectl_policyengine(*given, env=elsewhere).code == 0


def test_quota_tells_what_is_borrowed_and_the_shares(kubeconfig: Path) -> None:
    shown = until(kubeconfig, "quota", "1500m")
    assert table(shown, "SCHEDULER")[0] == ["teams", "a", "cpu", "1500m", "1", "500m", "3"]
    assert table(shown, "SCHEDULER")[1] == ["teams", "idle", "memory", "0", "", "", "1Gi"]
    assert "teams       red      12.5%" in shown


def test_rollout_tells_of_candidates(kubeconfig: Path) -> None:
    shown = until(kubeconfig, "rollout", "next")
    (row,) = table(shown, "SCHEDULER")
    assert row[:2] == ["teams", "next"] and row[3] == "shadow"
    assert row[-2:] == ["cycleTime 50ms", "tried"]


@pytest.mark.parametrize("command", ["status", "queue", "quota", "rollout"])
def test_each_is_json_too_one_page_a_scheduler(kubeconfig: Path, command: str) -> None:
    ended = kubectl_policyengine(command, "-o", "json", "--kubeconfig", kubeconfig)
    (page,) = json.loads(ended.out)
    assert (page["lease"], page["servedBy"]["leads"]) == ("kube-system/policyengine-sandbox", True)


def test_why_is_asked_of_the_scheduler_in_the_namespace_that_is_named_or_meant(kubeconfig: Path) -> None:
    until(kubeconfig, "queue", "pod asks for 2")
    flags = ("--kubeconfig", kubeconfig)
    for given in (("why", "big", *flags), ("-n", "default", "why", "big", *flags), (*flags, "why", "default/big")):
        shown = kubectl_policyengine(*given)
        assert shown.code == 0, shown.err
        assert shown.out.startswith("default/big  unschedulable; policy teams ")
    (one,) = json.loads(kubectl_policyengine("why", "small", "-o", "json", *flags).out)
    assert one["pod"] == "default/small" and one["running"]["node"].startswith("node-")


def test_explain_asks_the_scheduler_that_runs_of_all_that_wait_and_of_one(kubeconfig: Path) -> None:
    until(kubeconfig, "queue", "pod asks for 2")
    flags = ("--kubeconfig", kubeconfig)
    entries = {one["pod"]: one["running"] for one in json.loads(policyengine("explain", "-o", "json", *flags).out)}
    assert entries["default/big"]["place"] == "unschedulable" and entries["default/lost"]["place"] == "unserved"
    assert policyengine("explain", *flags).out == kubectl_policyengine("queue", *flags).out
    lost = policyengine("explain", "lost", *flags)
    (told,) = lost.out.splitlines()
    assert told.startswith("default/lost  unserved; its schedulerName is `temas`, and this scheduler serves teams, ")
    big = policyengine("explain", "big", *flags)
    assert "quota a: 1500m of 3 cpu are in use, the pod asks for 2" in big.out
    assert "note: what would help is worked out with --policy, by the text of `teams`" in big.err
    assert json.loads(policyengine("explain", "big", "-o", "json", *flags).out)[0]["running"]["attempts"] >= 1


def test_explain_answers_by_the_clusters_objects_where_it_is_told_to_or_nobody_can_be_asked(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(kubeconfig, "queue", "pod asks for 2")
    flags = ("--kubeconfig", kubeconfig)
    forecast = policyengine("explain", "lost", "--now", "2026-01-05T18:30:00Z", *flags)
    assert forecast.out.startswith("default/lost  nobody serves its schedulerName `temas`")
    absent = policyengine("explain", "lost", "--scheduler-namespace=other", *flags)
    assert absent.code == 0 and "nobody serves" in absent.out and "note: no scheduler" not in absent.err

    def refuses(*_: object) -> None:
        raise AccessDenied("the scheduler refuses its page")

    monkeypatch.setattr(running_scheduler, "timeline", refuses)
    refused = policyengine("explain", "lost", *flags)
    assert refused.code == 0 and "nobody serves" in refused.out
    told = "note: the scheduler refuses its page; what follows is worked out from the cluster's objects"
    assert told in refused.err.splitlines()


def test_what_is_no_pods_name_is_said_to_be_none(kubeconfig: Path) -> None:
    for name in ("a/b/c", "../x", "A", "a%2fb", ""):
        ended = kubectl_policyengine("why", "--kubeconfig", kubeconfig, "--", name)
        assert (ended.code, ended.out) == (2, "")
        assert f"`{name}` is not of the form [NAMESPACE/]NAME" in ended.err


def test_a_cluster_without_a_scheduler_is_told_in_one_line(tmp_path: Path) -> None:
    with process("-m", "tests.commands.empty_cluster", str(tmp_path / "config"), until="up"):
        ended = kubectl_policyengine("status", "--kubeconfig", tmp_path / "config")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == (
        "error: no scheduler runs: no Lease in namespace `kube-system` names one; name another: --scheduler-namespace\n"
    )
    away = kubectl_policyengine("queue", "--kubeconfig", tmp_path / "config")
    assert (away.code, away.err.count("\n")) == (3, 1)
    assert "the API server does not answer" in away.err
    assert kubectl_policyengine("queue", "--kubeconfig", tmp_path / "none").code == 2


def completed(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-policyengine", *words])
    complete()
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]


def test_completion_knows_commands_flags_and_pods_that_wait(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    assert completed(["q"], monkeypatch, capsys) == ["queue", "quota", ":4"]
    assert completed(["queue", "--out"], monkeypatch, capsys) == ["--output", ":4"]
    assert completed(["queue", "-o", "j"], monkeypatch, capsys) == ["json", ":4"]
    assert completed(["why", "b"], monkeypatch, capsys) == ["big", ":4"]
    assert completed(["-n", "other", "why", ""], monkeypatch, capsys) == [":4"]
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig.with_name("none")))
    assert completed(["why", "b"], monkeypatch, capsys) == [":4"]
    assert completed([], monkeypatch, capsys)[-1] == ":4"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
def test_the_real_kubectl_runs_and_completes_it(kubeconfig: Path, tmp_path: Path) -> None:
    for name, function in (("kubectl-policyengine", "main"), ("kubectl_complete-policyengine", "complete")):
        script = f"#!{sys.executable}\nfrom policyengine.commands.kubectl import {function}\n{function}()\n"
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(kubeconfig),
    }

    def kubectl(*arguments: str) -> str:
        command = ["kubectl", *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout

    assert kubectl("policyengine", "status").startswith("leader sandbox_")
    assert kubectl("__complete", "policyengine", "sta").startswith("status\t")


def test_ages_are_told_as_kubectl_tells_them() -> None:
    assert [age(seconds) for seconds in (0, 119, 120, 10_799, 12_000, 172_800)] == [
        *("0s", "119s", "2m", "179m", "3h20m", "2d")
    ]
