"""Where the objects of a world are, and what its pods, nodes and bindings look like."""

from __future__ import annotations

from typing import Any

import yaml

from tests.deploy.manifests import DEPLOY

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
MAPS = "/api/v1/namespaces/kube-system/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = yaml.safe_load((DEPLOY / "base" / "schedulingpolicies.yaml").read_text())
POLICIES = "/apis/policyengine.io/v1alpha1/namespaces/kube-system/schedulingpolicies"
MERGE = "application/merge-patch+json"
OURS = "ours"


def pod(name: str, cpu: str = "1", *, gang: str = "", least: int = 0, scheduler: str = OURS, **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    labels = {"podGroup": gang, "minAvailable": str(least)} if gang else {}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def of_set(name: str, cpu: str = "1", **more: Any) -> Json:
    """A pod that a controller makes anew when it is gone (`controllers`)."""
    made = pod(name, cpu, **more)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "set", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def node(name: str, cpu: str = "1", **spec: Any) -> Json:
    size = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": size, "allocatable": size, "conditions": [ready]}
    labels = {"kubernetes.io/hostname": name}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def binding(name: str, target: str) -> Json:
    return {"metadata": {"name": name}, "target": {"kind": "Node", "name": target}}
