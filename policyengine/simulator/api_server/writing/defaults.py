"""What the real server fills into a pod, in a Pod or a template (SetDefaults functions of core/v1).

What the real server fills into workloads: apps/v1, batch/v1, autoscaling/v2.

The defaults the real server fills in, by kind (SetDefaults functions of Kubernetes 1.36).
"""

from base64 import b64encode
from collections.abc import Callable
from copy import deepcopy
from typing import cast

from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage.store import Object, child, objects

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
NO_EXECUTE_SECONDS = 300


def fill(obj: Object, **values: Json) -> None:
    """Set each field that is absent or empty."""
    for name, value in values.items():
        if obj.get(name) in (None, ""):
            obj[name] = value


def image_tag(image: str) -> str:
    """The tag of an image reference; `latest` where neither tag nor digest is given."""
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag if colon else "" if digest else "latest"


def _probe(probe: Object) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe[name] = probe.get(name) or value
    get = probe.get("httpGet")
    if isinstance(get, dict):
        fill(get, path="/", scheme="HTTP")


def container(one: Object) -> None:
    """A container's defaults."""
    pull = "Always" if image_tag(str(one.get("image", ""))) == "latest" else "IfNotPresent"
    fill(
        one,
        imagePullPolicy=pull,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    for port in objects(one.get("ports")):
        fill(port, protocol="TCP")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = one.get(name)
        if isinstance(probe, dict):
            _probe(probe)
    for variable in objects(one.get("env")):
        reference = child(variable, "valueFrom", "fieldRef")
        if reference:
            fill(reference, apiVersion="v1")


VOLUME_MODES = ("configMap", "secret", "projected", "downwardAPI")


def _volume(volume: Object) -> None:
    if not any(isinstance(v, dict) for k, v in volume.items() if k != "name"):
        volume["emptyDir"] = {}
    for name in VOLUME_MODES:
        source = volume.get(name)
        if isinstance(source, dict) and source.get("defaultMode") is None:
            source["defaultMode"] = 0o644
    host_path = volume.get("hostPath")
    if isinstance(host_path, dict) and host_path.get("type") is None:
        host_path["type"] = ""
    template = child(volume, "ephemeral", "volumeClaimTemplate", "spec")
    if template:
        fill(template, volumeMode="Filesystem")


def pod_spec(spec: Object) -> None:
    """A PodSpec's defaults, in a pod or a template."""
    fill(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        schedulerName="default-scheduler",
    )
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for name in CONTAINER_LISTS:
        for one in objects(spec.get(name)):
            container(one)
    for volume in objects(spec.get("volumes")):
        _volume(volume)


def pod(obj: Object) -> None:
    """A Pod's defaults; requests follow limits, and host-network pods their container ports."""
    spec = child(obj, "spec")
    pod_spec(spec)
    whole = child(spec, "resources")
    if child(whole, "limits"):
        whole["requests"] = {**_missing_requests(spec, whole), **child(whole, "requests")}
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    for name in ("initContainers", "containers"):
        for one in objects(spec.get(name)):
            resources = child(one, "resources")
            limits = resources.get("limits")
            if isinstance(limits, dict) and limits:
                resources["requests"] = {**limits, **child(resources, "requests")}
            for port in objects(one.get("ports")) if spec.get("hostNetwork") else []:
                port["hostPort"] = port.get("hostPort") or port.get("containerPort")


def _missing_requests(spec: Object, whole: Object) -> Object:
    """Pod-level requests follow pod-level limits, for resources of which no container asks for anything."""
    asked = {name for one in objects(spec.get("containers")) for name in child(one, "resources", "requests")}
    return {name: amount for name, amount in child(whole, "limits").items() if name not in asked}


def tolerate_node_trouble(spec: Object) -> None:
    """Admission's DefaultTolerationSeconds: stay five minutes on a node that is not ready or unreachable."""
    tolerations = objects(spec.get("tolerations"))

    def covers(key: str) -> bool:
        return any(t.get("key", "") in (key, "") and t.get("effect", "") in ("NoExecute", "") for t in tolerations)

    added = False
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not covers(key):
            entry: Object = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append({**entry, "tolerationSeconds": NO_EXECUTE_SECONDS})
            added = True
    if added:
        spec["tolerations"] = cast(Json, tolerations)


MAX_INT32 = 2**31 - 1
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _open(spec: Object, **values: Json) -> None:
    """Set each field that is absent; nought and False are values."""
    for name, value in values.items():
        if spec.get(name) is None:
            spec[name] = value


def claim_template(claim: Object) -> None:
    """What a claim has from the start, in a template too."""
    fill(child(claim, "spec"), volumeMode="Filesystem")
    if isinstance(claim.get("status"), dict):
        fill(child(claim, "status"), phase="Pending")


def _template(obj: Object) -> Object:
    spec = child(obj, "spec")
    template_spec = child(spec, "template", "spec")
    if template_spec:
        pod_spec(template_spec)
    return spec


def deployment(obj: Object) -> None:
    """A Deployment's defaults."""
    spec = _template(obj)
    _open(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.get("strategy")
    strategy = spec["strategy"] = strategy if isinstance(strategy, dict) else {}
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        given = rolling if isinstance(rolling, dict) else {}
        strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **given}


def replicated(obj: Object) -> None:
    """A ReplicaSet's or ReplicationController's defaults."""
    spec = _template(obj)
    _open(spec, replicas=1)


def stateful_set(obj: Object) -> None:
    """A StatefulSet's defaults."""
    spec = _template(obj)
    fill(spec, podManagementPolicy="OrderedReady")
    _open(spec, replicas=1, revisionHistoryLimit=10)
    if not child(spec, "updateStrategy"):
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    if spec.get("persistentVolumeClaimRetentionPolicy") is None:
        spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    for claim in objects(spec.get("volumeClaimTemplates")):
        claim_template(claim)


def daemon_set(obj: Object) -> None:
    """A DaemonSet's defaults; an annotation counts its templates."""
    spec = _template(obj)
    meta = child(obj, "metadata")
    meta["annotations"] = {TEMPLATE_GENERATION: "1", **child(meta, "annotations")}
    _open(spec, revisionHistoryLimit=10)
    if not child(spec, "updateStrategy"):
        spec["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
        }


def job(obj: Object) -> None:
    """A Job's defaults; without labels of its own it shares those of its pods, one object with them."""
    _job_spec(_template(obj))
    meta, labels = child(obj, "metadata"), child(obj, "spec", "template", "metadata").get("labels")
    if labels and not meta.get("labels"):
        meta["labels"] = labels


def _job_spec(spec: Object) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    fill(spec, completionMode="NonIndexed", podReplacementPolicy=replacement)
    retries = 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32
    _open(spec, parallelism=1, backoffLimit=retries, suspend=False, manualSelector=False)


def cron_job(obj: Object) -> None:
    """A CronJob's defaults; those of its jobs are filled in when they are made, a pod's already here."""
    spec = child(obj, "spec")
    template = child(spec, "jobTemplate", "spec", "template", "spec")
    if template:
        pod_spec(template)
    fill(spec, concurrencyPolicy="Allow")
    _open(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


_SCALE_UP: dict[str, Json] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: dict[str, Json] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def horizontal_pod_autoscaler(obj: Object) -> None:
    """A HorizontalPodAutoscaler's defaults: 80 per cent of the CPU asked for; rules only where behavior is given."""
    spec = child(obj, "spec")
    _open(spec, minReplicas=1)
    if not spec.get("metrics"):
        target: Json = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        behavior["scaleUp"] = {**deepcopy(_SCALE_UP), **child(behavior, "scaleUp")}
        behavior["scaleDown"] = {**deepcopy(_SCALE_DOWN), **child(behavior, "scaleDown")}


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
