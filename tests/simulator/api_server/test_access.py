from typing import Any

from policyengine.simulator.api_server.access.authentication import service_account
from policyengine.simulator.api_server.http_requests import ADMIN, User
from tests.simulator.api_server.server_bench import Bench

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNT = service_account("kube-system", "policyengine")


def guarded() -> Bench:
    return Bench(tokens={"admin": User(ADMIN.name, ADMIN.groups), "poor": ACCOUNT})


async def admin(bench: Bench, path: str, body: Any) -> None:
    answer = await bench.ask("POST", path, body, token="admin")
    assert answer.status == 201, answer.body


async def test_a_claims_allocation_needs_a_right_beside_that_on_its_status() -> None:
    bench = guarded()
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["patch"]}]
    await admin(bench, f"{RBAC}/clusterroles", {"metadata": {"name": "r"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "policyengine", "namespace": "kube-system"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    bound = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
    await admin(bench, f"{RBAC}/clusterrolebindings", bound)
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    asked = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    await admin(bench, claims, {"metadata": {"name": "c"}, "spec": asked})

    result = {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "d"}
    reported = {"driver": "gpu.example.com", "pool": "n", "device": "d", "data": {"a": 1}}
    changes = (
        {"allocation": {"devices": {"results": [result]}}},
        {"devices": [reported]},
    )

    async def change(status: Any, who: str) -> Any:
        path, content = f"{claims}/c/status", "application/merge-patch+json"
        return (await bench.ask("PATCH", path, {"status": status}, content=content, token=who)).body

    message = (await change(changes[0], "poor"))["message"]
    assert message == (
        'ResourceClaim.resource.k8s.io "c" is invalid: status.allocation: Forbidden: changing status.allocation or '
        'status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: '
        'resourceclaims.resource.k8s.io is forbidden: User "system:serviceaccount:kube-system:policyengine" cannot '
        'patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope'
    )
    assert "allocation" in (await change(changes[0], "admin"))["status"]
    message = (await change(changes[1], "poor"))["message"]
    assert 'cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io"' in message
    assert (await change(changes[1], "admin"))["status"]["devices"][0]["data"] == {"a": 1}


async def test_an_allocation_comes_and_goes_and_never_changes() -> None:
    bench = guarded()
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    asked = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    await admin(bench, claims, {"metadata": {"name": "c", "finalizers": ["a/b"]}, "spec": asked})

    async def change(status: Any) -> Any:
        path, content = f"{claims}/c/status", "application/strategic-merge-patch+json"
        answer = (await bench.ask("PATCH", path, {"status": status}, content=content, token="admin")).body
        return answer.get("message") or answer["status"]

    def given(device: str) -> Any:
        result = {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": device}
        return {"devices": {"results": [result]}}

    users = [{"resource": "pods", "name": name, "uid": name} for name in "abc"]
    assert "may not be specified when `allocated` is not set" in await change({"reservedFor": users[:1]})
    await change({"allocation": given("d"), "reservedFor": users[:1]})
    shared = await change({"allocation": given("d"), "reservedFor": users[1:2]})
    assert sorted(user["uid"] for user in shared["reservedFor"]) == ["a", "b"]
    assert "status.allocation: Invalid value" in await change({"allocation": given("e")})
    await bench.ask("DELETE", f"{claims}/c", token="admin")
    assert "new entries may not be added" in await change({"reservedFor": users[2:]})
    assert "allocation" not in await change({"allocation": None, "reservedFor": None})
