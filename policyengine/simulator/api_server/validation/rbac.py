"""What roles and bindings must be."""

from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage.store import Object, child, objects
from policyengine.simulator.api_server.validation.metadata import invalid, required, unsupported

SUBJECTS = ("ServiceAccount", "User", "Group")


def _rules(new: Object, namespaced: bool) -> list[Cause]:
    return [
        cause for at, rule in enumerate(objects(new.get("rules"))) for cause in _rule(rule, f"rules[{at}]", namespaced)
    ]


def _rule(rule: Object, path: str, namespaced: bool) -> list[Cause]:
    if not rule.get("verbs"):
        return [required(f"{path}.verbs", "verbs must contain at least one value")]
    paths: Json = rule.get("nonResourceURLs")
    if paths:
        if namespaced:
            return [invalid(f"{path}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs")]
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            return [invalid(f"{path}.nonResourceURLs", paths, why)]
        return []
    found: list[Cause] = []
    if not rule.get("apiGroups"):
        found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def role(new: Object, old: Object | None) -> list[Cause]:
    """A Role."""
    return _rules(new, namespaced=True)


def cluster_role(new: Object, old: Object | None) -> list[Cause]:
    """A ClusterRole."""
    return _rules(new, namespaced=False)


def _binding(new: Object, old: Object | None, kinds: tuple[str, ...], home: bool) -> list[Cause]:
    reference = child(new, "roleRef")
    found: list[Cause] = []
    group = str(reference.get("apiGroup") or "")
    if group != "rbac.authorization.k8s.io":
        found.append(unsupported("roleRef.apiGroup", group, ("rbac.authorization.k8s.io",)))
    if reference.get("kind") not in kinds:
        found.append(unsupported("roleRef.kind", str(reference.get("kind") or ""), kinds))
    if not reference.get("name"):
        found.append(required("roleRef.name"))
    for at, subject in enumerate(objects(new.get("subjects"))):
        found += _subject(subject, f"subjects[{at}]", home)
    if old is not None and old.get("roleRef") != reference:
        shown: Json = {"APIGroup": group, "Kind": reference.get("kind"), "Name": reference.get("name")}
        found.append(invalid("roleRef", shown, "cannot change roleRef"))
    return found


def _subject(subject: Object, path: str, home: bool) -> list[Cause]:
    found: list[Cause] = [] if subject.get("name") else [required(f"{path}.name")]
    if subject.get("kind") not in SUBJECTS:
        return [*found, unsupported(f"{path}.kind", str(subject.get("kind") or ""), SUBJECTS)]
    if subject.get("kind") == "ServiceAccount" and not home and not subject.get("namespace"):
        found.append(required(f"{path}.namespace"))
    return found


def role_binding(new: Object, old: Object | None) -> list[Cause]:
    """A RoleBinding, which may name a Role or a ClusterRole."""
    return _binding(new, old, ("Role", "ClusterRole"), home=True)


def cluster_role_binding(new: Object, old: Object | None) -> list[Cause]:
    """A ClusterRoleBinding."""
    return _binding(new, old, ("ClusterRole",), home=False)
