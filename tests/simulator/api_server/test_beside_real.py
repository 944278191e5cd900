"""Objects created on this server and on a real one: defaults, admission and owned fields are the same."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import yaml

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Transport
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.api_server.kinds.served import Kinds
from policyengine.simulator.real_server import ASSETS, connect, real_server
from tests.alpha_gates import TOLERATIONS, flag

Json = dict[str, Any]
CHOSEN = {"uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime", "lastPhaseTransitionTime"}
OUT_OF_A_RANGE = {"clusterIP", "clusterIPs"}
# In order: a default class changes what pods get. Name of the case -> resource -> what is created.
CASES: dict[str, tuple[str, Json]] = {}
for _name, _said in yaml.safe_load("""
namespace: {v1/namespaces: {}}
pod: {v1/pods: {spec: {containers: [&c {name: c, image: i}]}}}
pod-with-more:
  v1/pods:
    spec:
      containers: [{name: c, image: i, resources: {limits: {cpu: 1000m}}, ports: [{containerPort: 80}]}]
pod-of-the-system: {v1/pods: {spec: {containers: [*c], priorityClassName: system-node-critical}}}
pod-of-no-class: {v1/pods: {spec: {containers: [*c], priorityClassName: absent}}}
pod-that-says-five: {v1/pods: {spec: {containers: [*c], priority: 5}}}
pod-that-says-never: {v1/pods: {spec: {containers: [*c], preemptionPolicy: Never}}}
pod-that-says-nought: {v1/pods: {spec: {containers: [*c], preemptionPolicy: PreemptLowerPriority, priority: 0}}}
pod-that-tolerates-more: {v1/pods: {spec: {containers: [*c], tolerations: [{key: k, operator: Gt, value: "-5"}]}}}
pod-that-tolerates-what-is-no-number:
  v1/pods:
    spec:
      containers: [*c]
      tolerations:
      - {key: k, operator: Lt}
      - {key: k, operator: Lt, value: "07"}
      - {key: k, operator: Gt, value: "1.5"}
      - {key: k, operator: Gt, value: "9223372036854775808"}
default-class: {scheduling.k8s.io/v1/priorityclasses: {value: 10, globalDefault: true}}
second-default-class: {scheduling.k8s.io/v1/priorityclasses: {value: 5, globalDefault: true}}
pod-of-the-default-class: {v1/pods: {spec: {containers: [*c]}}}
service: {v1/services: {spec: {selector: {a: b}, ports: [{port: 80}]}}}
claim: {v1/persistentvolumeclaims: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
volume:
  v1/persistentvolumes: {spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}}
node: {v1/nodes: {status: {capacity: {cpu: "4"}, conditions: [{type: Ready, status: "True"}]}}}
deployment:
  apps/v1/deployments:
    spec: &workload
      selector: {matchLabels: {a: b}}
      template: {metadata: {labels: {a: b}}, spec: {containers: [*c]}}
replica-set: {apps/v1/replicasets: {spec: *workload}}
stateful-set: {apps/v1/statefulsets: {spec: {serviceName: s, <<: *workload}}}
job: {batch/v1/jobs: {spec: {template: {spec: &once {restartPolicy: Never, containers: [*c]}}}}}
job-with-labels: {batch/v1/jobs: {spec: {template: {metadata: {labels: {a: b}}, spec: *once}}}}
cron-job: {batch/v1/cronjobs: {spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: *once}}}}}}
config-map: {v1/configmaps: {data: {a: b}}}
secret: {v1/secrets: {stringData: {a: b}}}
service-account: {v1/serviceaccounts: {}}
budget: {policy/v1/poddisruptionbudgets: {spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}}
lease: {coordination.k8s.io/v1/leases: {spec: {holderIdentity: x}}}
storage-class: {storage.k8s.io/v1/storageclasses: {provisioner: example.com/x}}
csi-node: {storage.k8s.io/v1/csinodes: {spec: {drivers: []}}}
csi-driver: {storage.k8s.io/v1/csidrivers: {spec: {}}}
device-class: {resource.k8s.io/v1/deviceclasses: {spec: {}}}
resource-claim:
  resource.k8s.io/v1/resourceclaims:
    spec: {devices: {requests: [{name: r, exactly: {deviceClassName: device-class}}]}}
resource-claim-of-either:
  resource.k8s.io/v1/resourceclaims:
    spec: {devices: {requests: [{name: r, firstAvailable: [{name: s, deviceClassName: device-class}]}]}}
quota: {v1/resourcequotas: {spec: {hard: {cpu: "1000"}}}}
cluster-role: {rbac.authorization.k8s.io/v1/clusterroles: {rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}}
role-without-rules: {rbac.authorization.k8s.io/v1/roles: {rules: []}}
ingress:
  networking.k8s.io/v1/ingresses: {spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}
runtime-class: {node.k8s.io/v1/runtimeclasses: {handler: x}}
""").items():
    ((_resource, _body),) = _said.items()
    _version, _, _plural = _resource.rpartition("/")
    _group, _, _bare = _version.rpartition("/")
    _space = "namespaces/default/" if Kinds().built_in(_group, _bare, _plural).namespaced else ""
    CASES[_name] = (f"/{'apis' if _group else 'api'}/{_version}/{_space}{_plural}", _body)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both() -> AsyncIterator[tuple[Transport, Transport]]:
    """A real server's administrator and ours."""
    if not os.environ.get(ASSETS):
        pytest.skip(f"${ASSETS} names no folder with etcd and kube-apiserver")
    async with real_server(flags=[flag(TOLERATIONS)]) as (url, token):
        real = connect(url, token)
        yield real, MemoryTransport(ApiServer(SystemClock()), user=ADMIN)
        await real.close()


async def created(on: Transport, path: str, body: Json) -> tuple[int, Json]:
    headers = {"Content-Type": "application/json", "User-Agent": "tests"}
    response = await on.request("POST", path, body=json.dumps(body).encode(), headers=headers, timeout=30.0)
    raw = await response.read()
    await response.close()
    return response.status, json.loads(raw)


def told(value: Any, uid: str) -> Any:
    """An object without what a server chooses; its own UID is named."""
    if isinstance(value, dict):
        kept = {key: told(item, uid) for key, item in value.items() if key not in CHOSEN}
        return {key: "out of a range" if key in OUT_OF_A_RANGE else item for key, item in kept.items()}
    if isinstance(value, list):
        return [told(item, uid) for item in value]
    return value.replace(uid, "UID") if uid and isinstance(value, str) else value


def differences(real: Any, ours: Any, path: str = "") -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted(real.keys() | ours.keys()):
            yield from differences(real.get(key, "absent"), ours.get(key, "absent"), f"{path}.{key}")
    elif real != ours:
        yield f"{path}: really {json.dumps(real)}, here {json.dumps(ours)}"


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_created_is_the_same_on_both(both: tuple[Transport, Transport]) -> None:
    found = []
    for name, (path, body) in CASES.items():
        (status, real), (ours_status, ours) = [
            await created(server, path, {"metadata": {"name": name}, **body}) for server in both
        ]
        assert (name, status) == (name, ours_status), (real, ours)
        uids = [answer.get("metadata", {}).get("uid", "") for answer in (real, ours)]
        found += [f"{name}{line}" for line in differences(told(real, uids[0]), told(ours, uids[1]))]
        if name == "default-class":
            await asyncio.sleep(1)  # until the real server's admission has heard of it
    assert not found, "\n".join(found)


SHOWN = ("jobs", "deployments", "replicasets", "statefulsets", "resourceclaims", "csinodes")


@pytest.mark.asyncio(loop_scope="module")
async def test_tables_are_the_same_on_both(both: tuple[Transport, Transport]) -> None:
    """Of what the test before created."""
    paths = {path for path, _ in CASES.values() if path.rpartition("/")[2] in SHOWN}
    assert len(paths) == len(SHOWN)
    for path in sorted(paths):
        real, ours = [await table(server, path) for server in both]
        assert ours == real


async def table(on: Transport, path: str) -> list[Any]:
    """Column names, and cells without what hangs on the moment or on a UID."""
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    response = await on.request("GET", path, headers=headers, timeout=30.0)
    found = json.loads(await response.read())
    await response.close()
    names = [column["name"] for column in found["columnDefinitions"]]
    moving = {names.index(name) for name in ("Age", "Selector") if name in names}
    rows = [[cell for at, cell in enumerate(row["cells"]) if at not in moving] for row in found["rows"]]
    return [names, *sorted(rows, key=str)]
