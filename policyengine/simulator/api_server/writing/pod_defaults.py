"""What the real server fills into a pod, in a Pod or a template (SetDefaults functions of core/v1)."""

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
