"""The defaults the real server fills in, by kind (SetDefaults functions of Kubernetes 1.36)."""

from collections.abc import Callable
from typing import cast

from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import Object

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
NO_EXECUTE_SECONDS = 300
DAY = 24 * 60 * 60


def objects(value: Json) -> list[Object]:
    """The objects of a list field; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def child(obj: Object, *names: str) -> Object:
    """A nested object, or an empty one that is not part of `obj`."""
    for name in names:
        below = obj.get(name)
        obj = below if isinstance(below, dict) else {}
    return obj


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


def _template(obj: Object) -> Object:
    spec = child(obj, "spec")
    template_spec = child(spec, "template", "spec")
    if template_spec:
        pod_spec(template_spec)
    return spec


def deployment(obj: Object) -> None:
    """A Deployment's defaults."""
    spec = _template(obj)
    for name, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
        if spec.get(name) is None:
            spec[name] = value
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
    if spec.get("replicas") is None:
        spec["replicas"] = 1


def stateful_set(obj: Object) -> None:
    """A StatefulSet's defaults."""
    spec = _template(obj)
    fill(spec, podManagementPolicy="OrderedReady")
    for name, value in (("replicas", 1), ("revisionHistoryLimit", 10)):
        if spec.get(name) is None:
            spec[name] = value
    if not child(spec, "updateStrategy"):
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    if spec.get("persistentVolumeClaimRetentionPolicy") is None:
        spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    for claim in objects(spec.get("volumeClaimTemplates")):
        persistent_volume_claim(claim)


def daemon_set(obj: Object) -> None:
    """A DaemonSet's defaults."""
    spec = _template(obj)
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    if not child(spec, "updateStrategy"):
        spec["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
        }


def job(obj: Object) -> None:
    """A Job's defaults."""
    spec = _template(obj)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    for name, value in (("parallelism", 1), ("backoffLimit", 6)):
        if spec.get(name) is None:
            spec[name] = value
    fill(spec, completionMode="NonIndexed", podReplacementPolicy="TerminatingOrFailed")
    if spec.get("suspend") is None:
        spec["suspend"] = False


def persistent_volume_claim(obj: Object) -> None:
    """A claim's defaults."""
    fill(child(obj, "spec"), volumeMode="Filesystem")
    if isinstance(obj.get("status"), dict):
        fill(child(obj, "status"), phase="Pending")


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
    """A Secret's defaults."""
    fill(obj, type="Opaque")


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
    "PersistentVolumeClaim": persistent_volume_claim,
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
