"""The defaults the real server fills in, by kind (SetDefaults functions of Kubernetes 1.36)."""

from base64 import b64encode
from collections.abc import Callable

from policyengine.simulator.api_server.storage.store import Object, child, objects
from policyengine.simulator.api_server.writing.pod_defaults import fill, pod
from policyengine.simulator.api_server.writing.workload_defaults import (
    claim_template,
    cron_job,
    daemon_set,
    deployment,
    horizontal_pod_autoscaler,
    job,
    replicated,
    stateful_set,
)

DAY = 24 * 60 * 60


def node(obj: Object) -> None:
    """A node's allocatable follows its capacity."""
    status = child(obj, "status")
    if status.get("allocatable") is None and isinstance(status.get("capacity"), dict):
        status["allocatable"] = dict(child(status, "capacity"))


def service(obj: Object) -> None:
    """A Service's defaults."""
    spec = child(obj, "spec")
    fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["type"] != "ExternalName":
        fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    for port in objects(spec.get("ports")):
        fill(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port")


def namespace(obj: Object) -> None:
    """A namespace carries its name as a label."""
    meta = child(obj, "metadata")
    name = meta.get("name")
    if name:
        labels = meta.get("labels")
        meta["labels"] = {**(labels if isinstance(labels, dict) else {}), "kubernetes.io/metadata.name": name}


def persistent_volume(obj: Object) -> None:
    """A volume's defaults."""
    spec = child(obj, "spec")
    fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    host_path = spec.get("hostPath")
    if isinstance(host_path, dict) and host_path.get("type") is None:
        host_path["type"] = ""
    fill(child(obj, "status"), phase="Pending")


def storage_class(obj: Object) -> None:
    """A StorageClass's defaults."""
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def priority_class(obj: Object) -> None:
    """A PriorityClass's defaults."""
    fill(obj, preemptionPolicy="PreemptLowerPriority")


def csi_driver(obj: Object) -> None:
    """A CSIDriver's defaults."""
    spec = child(obj, "spec")
    for name, value in (
        *(("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False)),
        *(("requiresRepublish", False), ("seLinuxMount", False)),
    ):
        if spec.get(name) is None:
            spec[name] = value
    fill(spec, fsGroupPolicy="ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def secret(obj: Object) -> None:
    """A Secret's defaults; what is given as plain text is stored as data."""
    fill(obj, type="Opaque")
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        encoded = {k: b64encode(str(v).encode()).decode() for k, v in plain.items()}
        obj["data"] = {**child(obj, "data"), **encoded}


def limit_range(obj: Object) -> None:
    """Limits of containers follow their maximum; requests follow limits, then the minimum."""
    for item in objects(child(obj, "spec").get("limits")):
        if item.get("type") == "Container":
            limits = {**child(item, "max"), **child(item, "default")}
            requests = {**child(item, "min"), **limits, **child(item, "defaultRequest")}
            for name, amounts in (("default", limits), ("defaultRequest", requests)):
                if amounts:
                    item[name] = amounts


def network_policy(obj: Object) -> None:
    """A policy that names no direction means what comes in, and what goes out where rules for that are there."""
    spec = child(obj, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    for rule in (*objects(spec.get("ingress")), *objects(spec.get("egress"))):
        for port in objects(rule.get("ports")):
            fill(port, protocol="TCP")


def endpoint_slice(obj: Object) -> None:
    """Ports of endpoints are TCP and have a name, an empty one if need be."""
    for port in objects(obj.get("ports")):
        port["name"] = port.get("name") or ""
        fill(port, protocol="TCP")


def resource_claim(obj: Object) -> None:
    """A request of devices means one of them."""
    _devices(child(obj, "spec"))


def resource_claim_template(obj: Object) -> None:
    """As for the claims made of it."""
    _devices(child(obj, "spec", "spec"))


def _devices(spec: Object) -> None:
    for request in objects(child(spec, "devices").get("requests")):
        for asked in (child(request, "exactly"), *objects(request.get("firstAvailable"))):
            if asked:
                fill(asked, allocationMode="ExactCount")
                if asked["allocationMode"] == "ExactCount":
                    asked["count"] = asked.get("count") or 1


def binding_of_role(obj: Object) -> None:
    """Groups of references to roles and subjects."""
    fill(child(obj, "roleRef"), apiGroup="rbac.authorization.k8s.io")
    for subject in objects(obj.get("subjects")):
        if subject.get("kind") in ("User", "Group"):
            fill(subject, apiGroup="rbac.authorization.k8s.io")


def custom_resource_definition(obj: Object) -> None:
    """A CustomResourceDefinition's defaults."""
    spec = child(obj, "spec")
    names = child(spec, "names")
    if names:
        kind = str(names.get("kind", ""))
        fill(names, singular=kind.lower(), listKind=f"{kind}List")
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    for version in objects(spec.get("versions")):
        for column in objects(version.get("additionalPrinterColumns")):
            if not column.get("priority"):
                column.pop("priority", None)


BY_KIND: dict[str, Callable[[Object], None]] = {
    "Pod": pod,
    "Node": node,
    "Service": service,
    "Namespace": namespace,
    "Deployment": deployment,
    "ReplicaSet": replicated,
    "ReplicationController": replicated,
    "StatefulSet": stateful_set,
    "DaemonSet": daemon_set,
    "Job": job,
    "CronJob": cron_job,
    "HorizontalPodAutoscaler": horizontal_pod_autoscaler,
    "LimitRange": limit_range,
    "NetworkPolicy": network_policy,
    "EndpointSlice": endpoint_slice,
    "ResourceClaim": resource_claim,
    "ResourceClaimTemplate": resource_claim_template,
    "PersistentVolumeClaim": claim_template,
    "PersistentVolume": persistent_volume,
    "StorageClass": storage_class,
    "PriorityClass": priority_class,
    "CSIDriver": csi_driver,
    "Secret": secret,
    "RoleBinding": binding_of_role,
    "ClusterRoleBinding": binding_of_role,
    "CustomResourceDefinition": custom_resource_definition,
}


def apply_defaults(kind: str, obj: Object) -> None:
    """Fill in what `obj` leaves open."""
    found = BY_KIND.get(kind)
    if found is not None:
        found(obj)
