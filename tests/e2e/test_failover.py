"""Two real processes and one lease: the leader is killed, the other takes over, and no pod is bound twice."""

import json
import signal
import time
from pathlib import Path

from tests.api_servers import the_most_real
from tests.e2e.cluster import Kubectl, pod, scheduler, served

POLICY = Path(__file__).resolve().parent.parent.parent / "policies" / "riya.policy"


def holder(kubectl: Kubectl) -> str:
    return kubectl(
        "-n", "kube-system", "get", "lease", "policyengine", "-o", "jsonpath={.spec.holderIdentity}", check=False
    )


def is_held(kubectl: Kubectl) -> None:
    """Wait until somebody holds the lease."""
    kubectl("-n", "kube-system", "wait", "lease/policyengine", "--for=create", "--timeout=60s")
    kubectl("-n", "kube-system", "wait", "lease/policyengine", "--for=jsonpath={.spec.holderIdentity}", "--timeout=60s")


def is_placed(kubectl: Kubectl, name: str) -> float:
    """Wait until a pod has a node; the seconds that took."""
    began = time.monotonic()
    kubectl.until(f"pod/{name}", "jsonpath={.spec.nodeName}")
    return time.monotonic() - began


@the_most_real
def test_a_killed_leader_is_followed_and_a_stopped_one_at_once(kind: str, tmp_path: Path) -> None:
    run = ("--policy", str(POLICY), "--listen", "", "--log-format", "json")
    with served(kind, tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig, "default")
        with scheduler(kubeconfig, *run) as first:
            is_held(kubectl)
            one = holder(kubectl)
            with scheduler(kubeconfig, *run) as second:
                kubectl.apply(pod("a"))
                is_placed(kubectl, "a")
                first.send_signal(signal.SIGKILL)
                first.wait()
                kubectl.apply(pod("b"))
                took = is_placed(kubectl, "b")
                assert took < 15 + 2 + 5, "the lease, one retry, and what a loaded machine takes"
                assert holder(kubectl) != one
                second.send_signal(signal.SIGTERM)
                second.wait(30)
                assert second.returncode == 0
        assert holder(kubectl) == ""
        with scheduler(kubeconfig, *run):
            kubectl.apply(pod("c"))
            assert is_placed(kubectl, "c") < 14
        events = json.loads(kubectl("get", "events", "-o", "json"))["items"]
        scheduled = [event["involvedObject"]["name"] for event in events if event["reason"] == "Scheduled"]
        assert sorted(scheduled) == ["a", "b", "c"]


def test_a_leader_that_was_stopped_for_longer_than_its_lease_binds_nothing_and_ends(tmp_path: Path) -> None:
    run = ("--policy", str(POLICY), "--listen", "", "--leader-elect-lease-duration", "4s")
    times = ("--leader-elect-renew-deadline", "3s", "--leader-elect-retry-period", "1s")
    with served("embedded", tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig, "default")
        with scheduler(kubeconfig, *run, *times) as first:
            is_held(kubectl)
            one = holder(kubectl)
            with scheduler(kubeconfig, *run, *times):
                first.send_signal(signal.SIGSTOP)
                kubectl.apply(pod("a"))
                is_placed(kubectl, "a")
                assert holder(kubectl) != one
                kubectl.apply(pod("b"))
                first.send_signal(signal.SIGCONT)
                assert first.wait(30) == 1
                is_placed(kubectl, "b")
                assert first.stdout is not None
                assert "leadership lost" in first.stdout.read()


def test_a_default_port_in_use_costs_the_pages_and_a_given_one_the_start(tmp_path: Path) -> None:
    with served("embedded", tmp_path) as kubeconfig:
        run = ("--policy", str(POLICY), "--no-leader-elect", "--listen", "127.0.0.1:18471")
        with scheduler(kubeconfig, *run):
            from tests.commands.process import policyengine

            own = kubeconfig.with_name("scheduler.kubeconfig")
            ended = policyengine("run", "--kubeconfig", own, *run)
            assert ended.code == 2
            assert "error: cannot listen on `127.0.0.1:18471`: address already in use; choose another" in ended.err
