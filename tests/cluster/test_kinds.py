"""The table of kinds, held against the page about dumps, and itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from policyengine.cluster.events import Resource
from policyengine.cluster.kinds import BY_KIND, FINISHED_PODS, NODES, PODS, SCHEDULING_POLICIES, STRUCTS, Kind

ROOT = Path(__file__).resolve().parents[2]
EVERY = [NODES, PODS, SCHEDULING_POLICIES, *BY_KIND.values()]


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind.dump_key], ids=lambda kind: kind.kind)
def test_the_page_about_explain_names_the_list_of_each_kind(kind: Kind) -> None:  # type: ignore[type-arg]
    assert f"`{kind.dump_key}`" in (ROOT / "docs/explain.md").read_text(encoding="utf-8")


def test_no_two_kinds_share_a_list_or_a_path() -> None:
    for said in ([kind.dump_key for kind in EVERY if kind.dump_key], [kind.path() for kind in EVERY]):
        assert len(set(said)) == len(said)


def test_every_kind_whose_changes_are_events_is_in_the_table() -> None:
    others = {FINISHED_PODS.event, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.TIME, Resource.WILDCARD}
    assert {kind.event for kind in EVERY} >= set(Resource) - others


def test_the_kinds_that_a_test_may_give_are_listed_with_the_workloads_first_and_the_groups_last() -> None:
    names = list(STRUCTS)
    assert names[:8] == [
        *("Pod", "Node", "Namespace", "Service"),
        *("ReplicationController", "ReplicaSet", "StatefulSet", "PodDisruptionBudget"),
    ]
    assert names[-5:] == ["DeviceClass", "ConfigMap", "PodGroup", "NativePodGroup", "Lease"]


FROM_THREADS = """
import sys, threading
from policyengine.cluster.kinds import STRUCTS
from policyengine.cluster.objects import decode

def decode_all(kinds):
    together.wait()
    for kind in kinds:
        decode(kind, {"metadata": {"name": "a"}, "spec": {}, "status": {}})
        decode(kind, b'{"metadata": {"name": "a"}}')

sys.setswitchinterval(1e-6)
together = threading.Barrier(32)
kinds = list(STRUCTS.values())
threads = [threading.Thread(target=decode_all, args=(kinds[:: 1 - 2 * (number % 2)],)) for number in range(32)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("decoded", end="")
"""


def test_threads_of_a_fresh_process_decode_every_kind_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", FROM_THREADS], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "decoded", "")
