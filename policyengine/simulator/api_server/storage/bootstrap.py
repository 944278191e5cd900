"""What a fresh server holds: its namespaces, the priority classes of the system, and the roles all clusters have."""

from collections.abc import Callable

from policyengine.simulator.api_server.storage.store import Object

NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")
READ = ["get", "list", "watch"]
DISCOVERY = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
]
PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
REVIEWS = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]


def _rule(groups: list[str], resources: list[str], verbs: list[str], names: list[str] | None = None) -> Object:
    rule: Object = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
    return {**rule, "resourceNames": list(names)} if names else rule


def _paths(paths: list[str]) -> Object:
    return {"verbs": ["get"], "nonResourceURLs": list(paths)}


CLUSTER_ROLES: dict[str, list[Object]] = {
    "cluster-admin": [_rule(["*"], ["*"], ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "system:discovery": [_paths(DISCOVERY)],
    "system:public-info-viewer": [_paths(PUBLIC)],
    "system:basic-user": [
        _rule(["authorization.k8s.io"], REVIEWS, ["create"]),
        _rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"]),
    ],
    "system:kube-scheduler": [
        _rule(["", "events.k8s.io"], ["events"], ["create", "patch", "update"]),
        _rule(["coordination.k8s.io"], ["leases"], ["create", "list", "watch"]),
        _rule(["coordination.k8s.io"], ["leases"], ["get", "update"], ["kube-scheduler"]),
        _rule([""], ["nodes"], READ),
        _rule([""], ["pods"], ["delete", *READ]),
        _rule([""], ["bindings", "pods/binding"], ["create"]),
        _rule([""], ["pods/status"], ["patch", "update"]),
        _rule([""], ["replicationcontrollers", "services", "namespaces", "persistentvolumes"], READ),
        _rule(["apps"], ["replicasets", "statefulsets"], READ),
        _rule(["policy"], ["poddisruptionbudgets"], READ),
        _rule([""], ["persistentvolumeclaims", "persistentvolumes"], ["patch", "update", *READ]),
        _rule(["storage.k8s.io"], ["csinodes", "csidrivers", "csistoragecapacities", "storageclasses"], READ),
        _rule(["storage.k8s.io"], ["volumeattachments"], READ),
        _rule(["resource.k8s.io"], ["deviceclasses", "resourceclaims", "resourceslices"], READ),
        _rule(["authentication.k8s.io"], ["tokenreviews"], ["create"]),
        _rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
    ],
    "view": [
        _rule(
            [""],
            ["configmaps", "endpoints", "events", "namespaces", "persistentvolumeclaims", "pods", "services"],
            READ,
        ),
        _rule(["apps"], ["daemonsets", "deployments", "replicasets", "statefulsets"], READ),
        _rule(["policy"], ["poddisruptionbudgets"], READ),
    ],
}
BINDINGS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("cluster-admin", "cluster-admin", (("Group", "system:masters"),)),
    ("system:discovery", "system:discovery", (("Group", "system:authenticated"),)),
    ("system:basic-user", "system:basic-user", (("Group", "system:authenticated"),)),
    (
        "system:public-info-viewer",
        "system:public-info-viewer",
        (("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
    ),
    ("system:kube-scheduler", "system:kube-scheduler", (("User", "system:kube-scheduler"),)),
)
RBAC = "rbac.authorization.k8s.io"
PRIORITY_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, "Used for system critical pods that must run in the cluster."),
    ("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved from their node."),
)

Make = Callable[[str, str, str, str, Object], None]


def seed(make: Make) -> None:
    """Create everything; `make(group, version, plural, namespace, object)`."""
    for name in NAMESPACES:
        make("", "v1", "namespaces", "", {"metadata": {"name": name}, "spec": {}, "status": {}})
    for name, value, text in PRIORITY_CLASSES:
        obj: Object = {"metadata": {"name": name}, "value": value, "description": text}
        make("scheduling.k8s.io", "v1", "priorityclasses", "", obj)
    for name, rules in CLUSTER_ROLES.items():
        make(RBAC, "v1", "clusterroles", "", {"metadata": {"name": name}, "rules": [dict(rule) for rule in rules]})
    for name, role, subjects in BINDINGS:
        binding: Object = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": kind, "apiGroup": RBAC, "name": who} for kind, who in subjects],
        }
        make(RBAC, "v1", "clusterrolebindings", "", binding)
    # `kubectl` and tests look for it; nothing answers behind its address.
    service: Object = {
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "type": "ClusterIP",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
        },
        "status": {},
    }
    make("", "v1", "services", "default", service)
