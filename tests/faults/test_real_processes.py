"""Faults for real: processes that are killed and stopped, servers that go away, wires that are cut or fall silent.

Every scene is played on etcd and kube-apiserver where `$KUBEBUILDER_ASSETS` is, else on the embedded server as a
process, and with `$EVERY_SERVER` on both. Each ends with the auditor of the simulated faults, who is shown what the
server's own watches showed a bystander: no pod bound twice, no node above what it has, one leader, no pod left without
a reason.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import unused_port

from policyengine.kube.leader import LeaseSettings
from policyengine.kube.watching.reflector import STALL_AFTER
from tests.api_servers import the_most_real
from tests.faults.objects import CRD, CRDS, MAPS, MERGE, POLICIES
from tests.faults.objects import PODS as PODS_PATH
from tests.faults.process_cluster import (
    LEASE,
    PATIENT,
    POLICY,
    RENEW,
    RETRY,
    SERVES,
    SHORT,
    Cluster,
    Real,
    Replica,
    cluster,
)
from tests.faults.process_evidence import PATHS

NODES, CPUS, PODS = 6, 6, 45
"""More pods than have room, so that whoever forgets a binding fills a node over."""
ROOM = NODES * CPUS
RIGHT_WITHIN = 5.0
"""Seconds after the return of a server that went back, in which all is right again."""
SLACK = 3.0
"""Seconds that a busy machine may add."""
PACED = ("--kube-api-qps", "12", "--kube-api-burst", "1")
"""A burst of bindings lasts three seconds: longer than a busy machine takes to create the pods and to look."""


async def pair(at: Cluster, folder: Path) -> tuple[Replica, Replica]:
    """A leader and a standby, on a cluster with nodes."""
    await at.nodes(NODES, str(CPUS))
    leader = await at.start("scheduler-a", folder, *SHORT, *PACED)
    return leader, await at.start("scheduler-b", folder, *SHORT, *PACED)


async def one(at: Cluster, folder: Path, patience: float = STALL_AFTER, flags: Sequence[str] = PACED) -> Replica:
    await at.nodes(NODES, str(CPUS))
    return await at.start("scheduler-a", folder, *flags, patience=patience)


async def within_a_burst(at: Cluster, bound: int = 8, of: int = PODS) -> None:
    """Some of the pods are bound, and more are on their way."""
    await at.pods(of)
    await at.bound(bound)
    assert len(at.bystander.bound) < min(of, ROOM), "the burst was over too soon for what this test is about"


async def taken_over(at: Cluster, by: Replica, seconds: float) -> float:
    return await at.bystander.until(lambda: at.leader_is(by), seconds, f"{by.name} leads")


@the_most_real
async def test_a_leader_killed_within_a_burst_is_followed(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        leader, standby = await pair(at, tmp_path)
        await within_a_burst(at)
        killed = time.time()
        leader.signal(signal.SIGKILL)
        await taken_over(at, standby, LEASE + 2)
        await at.settled(ROOM)
        by = at.bound_by()
        assert by[leader.name] and by[standby.name]
        first = next(write.at for write in at.bystander.bindings() if write.name == by[standby.name][0])
        print(f"{kind}: the first binding {first - killed:.2f} s after the leader was killed, lease {LEASE:g} s")


@the_most_real
async def test_a_leader_that_stood_still_past_its_lease_binds_no_more(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        leader, standby = await pair(at, tmp_path)
        await within_a_burst(at)
        leader.signal(signal.SIGSTOP)
        await taken_over(at, standby, LEASE + 2)
        leader.signal(signal.SIGCONT)
        assert await leader.ended() == 1
        assert "leadership lost" in leader.timeline()
        await at.settled(ROOM)


@the_most_real
async def test_a_leader_that_is_told_to_end_hands_over_at_once(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        leader, standby = await pair(at, tmp_path)
        await within_a_burst(at)
        leader.signal(signal.SIGTERM)
        assert await leader.ended() == 0
        await taken_over(at, standby, RETRY + 1)
        await at.settled(ROOM)
        assert at.bystander.lease["leaseTransitions"] == 1


@the_most_real
async def test_an_api_server_killed_within_a_burst_and_started_again(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        await one(at, tmp_path)
        await within_a_burst(at)
        await at.server.kill()
        await asyncio.sleep(1)
        await at.server.start()
        await at.settled(ROOM)
        await at.nodes(1, str(CPUS), first=NODES)
        await at.settled(ROOM + CPUS)


async def with_ghosts(at: Cluster, folder: Path) -> tuple[Replica, str]:
    """A copy was taken, ten pods were bound in it; since then five of them went and the room is full of others. The
    replica, and where its pages are."""
    pages = f"127.0.0.1:{unused_port()}"
    patient = ("--leader-elect-lease-duration", "60s", "--leader-elect-renew-deadline", "50s")
    replica = await one(at, folder, flags=("--listen", pages, *patient))  # a server takes its time on a busy machine
    await at.pods(10, "kept-")
    await at.bound(10)
    await at.server.copy()
    copied = (await at.call("GET", f"{PATHS['Lease']}/{LeaseSettings().name}"))["spec"]["renewTime"]
    for number in range(5):
        await at.call("DELETE", f"{PODS_PATH}/kept-{number}", {"gracePeriodSeconds": 0})
    await at.pods(31, "ghost-")
    await at.bound(ROOM)
    await at.call("POST", MAPS, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "busy"}})
    for number in range(300):  # what kube-apiserver itself writes when it starts must not bring the copy level
        await at.call("PATCH", f"{MAPS}/busy", {"data": {"a": str(number)}}, MERGE)
    # A Lease that was not renewed since the copy does not go back, and shows nobody that the server did.
    await at.bystander.until(lambda: at.bystander.lease["renewTime"] > copied, PATIENT, "the lease is renewed")
    return replica, f"http://{pages}"


async def soon_right(at: Cluster, pages: str) -> float:
    """All that fits is bound, and the cache equals a fresh list; how long that took."""
    took = await at.bound(ROOM)
    async with ClientSession() as session:
        assert (await session.get(f"{pages}/readyz")).status == 200
        page = await (await session.get(f"{pages}/debug/cache/compare")).json()
    same: dict[str, list[str]] = {"onlyInCache": [], "onlyOnServer": []}
    assert (page["nodes"], page["pods"], page["recreated"], page["elsewhere"]) == (same, same, [], {})
    return took


@the_most_real
async def test_a_server_that_is_restored_from_an_older_copy(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        replica, pages = await with_ghosts(at, tmp_path)
        await at.server.kill()
        at.bystander.restored()
        await at.server.go_back()
        await at.server.start()
        returned = time.monotonic()
        await at.pods(ROOM - 10, "new-")
        await soon_right(at, pages)
        took = time.monotonic() - returned
        assert took < RIGHT_WITHIN + SLACK
        assert len([line for line in replica.said if "has gone back to an older copy" in line]) == 1, replica.timeline()
        print(f"{kind}: all is bound and known {took:.1f} s after the server's return")


@pytest.mark.parametrize("kind", ["envtest"])
async def test_an_etcd_that_is_restored_under_a_kube_apiserver_that_goes_on(kind: str, tmp_path: Path) -> None:
    """Its lists are of before, single objects are not: that is said, nothing is bound by mistake, and a restart cures
    it."""
    async with cluster(kind, tmp_path) as at:
        replica, pages = await with_ghosts(at, tmp_path)
        at.bystander.restored()
        await at.server.go_back()
        await at.pods(ROOM - 10, "new-")
        await replica.says("has gone back to an older copy")
        await asyncio.sleep(3)
        await at.server.kill()
        await at.server.start()
        returned = time.monotonic()
        await soon_right(at, pages)
        took = time.monotonic() - returned
        assert took < RIGHT_WITHIN + SLACK
        print(f"{kind}: all is bound and known {took:.1f} s after kube-apiserver's return")


@pytest.mark.parametrize("kind", ["envtest"])
async def test_an_etcd_killed_within_a_burst_and_started_again(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        await one(at, tmp_path)
        await within_a_burst(at)
        assert isinstance(at.server, Real)
        await at.server.etcd.kill()
        await asyncio.sleep(2)
        await at.server.etcd.start()
        await at.settled(ROOM)


@the_most_real
async def test_connections_that_are_reset_again_and_again(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        replica = await one(at, tmp_path)
        await within_a_burst(at)
        for _ in range(8):
            replica.wire.cut()
            await asyncio.sleep(0.2)
        await at.settled(ROOM)


@the_most_real
async def test_connections_that_fall_silent_are_found_out(kind: str, tmp_path: Path) -> None:
    """Half open: no FIN and no RST, neither for the watches nor for the bindings under way."""
    async with cluster(kind, tmp_path) as at:
        replica = await one(at, tmp_path, patience=1.5)
        await within_a_burst(at)
        replica.wire.silence(new=False)
        await at.settled(ROOM)
        assert any("silent for" in line for line in replica.said), replica.timeline()


@the_most_real
async def test_a_leader_that_is_cut_off_ends_and_is_followed(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        leader, standby = await pair(at, tmp_path)
        await within_a_burst(at)
        began = time.monotonic()
        leader.wire.silence(new=True)
        assert await leader.ended() == 1
        assert time.monotonic() - began < RENEW + RETRY + 2
        await taken_over(at, standby, LEASE + 2)
        leader.wire.heal()
        await at.settled(ROOM)


@the_most_real
async def test_policies_replaced_while_bindings_run(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        await at.config_map("main", ELSEWHERE)
        await one(at, tmp_path)
        await at.status("main", "accepted")
        await within_a_burst(at, bound=4, of=20)
        await at.config_map("main", ELSEWHERE + "\n}", method="PATCH")
        assert (await at.status("main", "rejected"))["line"] == 4
        await at.pods(4, "under-the-last-good-one-")
        await at.bound(24)
        assert not {"n0", "n1"} & set(at.bystander.bound.values())
        await at.pods(PODS - 24, "under-both-")
        await at.config_map("main", POLICY, method="PATCH")
        await at.status("main", "accepted")
        await at.settled(ROOM)


@the_most_real
async def test_policies_of_both_forms_that_flap_while_the_leader_of_three_is_killed(kind: str, tmp_path: Path) -> None:
    async with cluster(kind, tmp_path) as at:
        await at.call("POST", CRDS, CRD)
        await at.config_map("main", ELSEWHERE)
        leader, _ = await pair(at, tmp_path)
        await at.start("scheduler-c", tmp_path, *SHORT, *PACED)
        await at.config_map("flaps", OTHER)
        spec = {"policies": {"a.policy": OTHER.replace("other", "third")}}
        about = {"apiVersion": "policyengine.io/v1alpha1", "kind": "SchedulingPolicy", "metadata": {"name": "flaps"}}
        await at.call("POST", POLICIES, {**about, "spec": spec})
        flapping = asyncio.create_task(flap(at))
        await within_a_burst(at, of=24)
        leader.signal(signal.SIGKILL)
        await at.bound(24)
        assert not flapping.done(), "the burst took longer than the flapping"
        assert not {"n0", "n1"} & set(at.bystander.bound.values())
        await flapping
        await at.settled(24)
        assert (await at.status("flaps", "accepted"))["message"] == ""
        deadline = time.monotonic() + 60
        while (item := await at.call("GET", f"{POLICIES}/flaps")).get("status", {}).get("observedGeneration") != (
            item["metadata"]["generation"]
        ):
            assert time.monotonic() < deadline, item
            await asyncio.sleep(0.5)
        assert {row["type"]: row["status"] for row in item["status"]["conditions"]}["Ready"] == "True"


OTHER = 'policy "other" { scheduler "other" }'


async def flap(at: Cluster, changes: int = 120) -> None:
    """A ConfigMap and a SchedulingPolicy change ten times a second; their last texts are good."""
    for number in range(changes + 1):
        text = OTHER[: 20 if number % 2 else None] + f"// {number}\n"
        await at.config_map("flaps", text, method="PATCH")
        body = {"spec": {"policies": {"a.policy": text.replace("other", "third")}}}
        await at.call("PATCH", f"{POLICIES}/flaps", body, MERGE)
        await asyncio.sleep(0.1)


BURNS = f"""policy "burns" {{ scheduler "burns" filter "f" {{ require node.free.cpu > 1000 }}
  test "t" {{
    given node "a" {{ allocatable: {{cpu: 4, pods: 9}} }}
    given pod "q" {{}}
    {"after 100000s " * 30}
    expect "q" rejected on "a" by "f" }} }}"""
"""Less than a kilobyte, some seconds of CPU time."""
MANY_TESTS = 'policy "tests" { scheduler "tests" filter "f" { require true }' + "".join(
    f' test "t{number}" {{ given node "a" {{ allocatable: {{cpu: 4, pods: 9}} }} given pod "q" {{}}'
    ' after 100000s expect "q" on "a" }'
    for number in range(700)
)


@the_most_real
async def test_policies_that_burn_cpu_time_hold_up_no_policy_no_binding_no_start_and_no_end(
    kind: str, tmp_path: Path
) -> None:
    async with cluster(kind, tmp_path) as at:
        await at.nodes(NODES, str(CPUS))
        await at.config_map("main", ELSEWHERE)
        leader = await at.start("scheduler-a", tmp_path, *SHORT)
        await at.status("main", "accepted")
        burning = [f"burns-{number}" for number in range(3)]
        for name in burning:
            await at.config_map(name, BURNS)
        await at.config_map("many-tests", MANY_TESTS + " }")
        await at.pods(6, "beside-them-")
        await at.bound(6)
        await at.config_map("late", 'policy "late" { scheduler "late" }')
        await at.status("late", "accepted")
        for name in [*burning, "many-tests"]:
            message = (await at.status(name, "rejected"))["message"]
            assert message.startswith("compiling and testing it takes more than 2 s of CPU time"), message
        for name in burning:
            await at.config_map(name, BURNS.replace("100000s", "200000s"), method="PATCH")
        await asyncio.sleep(0.5)
        began = time.monotonic()
        leader.signal(signal.SIGTERM)
        assert await leader.ended() == 0
        took = time.monotonic() - began
        assert took < 2 + SLACK
        print(f"{kind}: ended {took:.2f} s after SIGTERM")
        began = time.monotonic()
        await at.start("scheduler-b", tmp_path, *SHORT)
        await at.pods(6, "after-the-restart-")
        await at.bound(12)
        print(f"{kind}: bound {time.monotonic() - began:.2f} s after the start")
        assert not {"n0", "n1"} & set(at.bystander.bound.values()), "the last good policy has served all the time"
        await at.settled(12)


ELSEWHERE = f"""policy "main" {{
  scheduler "{SERVES}"
  filter "elsewhere" {{ require !(node.name in ["n0", "n1"]) else "is for others" }} }}"""
