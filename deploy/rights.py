"""Writes the rights that the manifests and the chart give: `python -m deploy.rights`.

What is read and patched of the cluster follows from the table of kinds (`policyengine/cluster/kinds.py`); the rest is
listed here. tests/deploy/test_rights.py sees that the files are fresh, and takes each verb out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyengine.cluster.kinds import BY_KIND, NODES, PODS, SCHEDULING_POLICIES, Kind, definition_of

DEPLOY = Path(__file__).resolve().parent
NAMESPACE, POLICIES = "kube-system", "policyengine-policies"
READ = ("list", "watch")


@dataclass(frozen=True)
class Rule:
    """One rule of a role."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    name: str = ""
    """The one object that it is about; the chart puts another name here for what is called after the release."""
    why: str = ""
    pages: tuple[str, ...] = ()
    """Paths of our own pages, where it is about no resource."""

    def lines(self, margin: str) -> Iterator[str]:
        """As YAML."""
        if self.why:
            yield f"{margin}# {self.why}"
        if self.pages:
            yield f"{margin}- nonResourceURLs: [{', '.join(self.pages)}]"
            yield f"{margin}  verbs: [{', '.join(self.verbs)}]"
            return
        group = self.group or '""'
        yield f"{margin}- apiGroups: [{group}]"
        yield f"{margin}  resources: [{', '.join(self.resources)}]"
        if self.name:
            yield f"{margin}  resourceNames: [{self.name}]"
        yield f"{margin}  verbs: [{', '.join(self.verbs)}]"


@dataclass(frozen=True)
class Role:
    """The rights that go with one feature."""

    why: str
    rules: tuple[Rule, ...]


def _read(kinds: Iterable[Kind[Any]]) -> Iterator[Rule]:
    """A rule a group."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind.plural)
    return (Rule(group, tuple(plurals), READ) for group, plurals in groups.items())


def _patched(kinds: Iterable[Kind[Any]]) -> Iterator[Rule]:
    for kind in kinds:
        if kind.patched:
            resources = tuple("/".join(filter(None, (kind.plural, part))) for part in kind.patched)
            yield Rule(kind.group, resources, ("patch",))


def _definitions(kinds: Iterable[Kind[Any]]) -> Iterator[Rule]:
    """To hear when a definition comes."""
    for kind in kinds:
        if kind.is_custom:
            definition = definition_of(kind)
            why = "A definition that is applied later is found at once; without this right, within five seconds."
            yield Rule(definition.group, (definition.plural,), ("watch",), f"{kind.plural}.{kind.group}", why)


_CLAIMS = BY_KIND["ResourceClaim"]
_VOLUMES = [BY_KIND["PersistentVolume"], BY_KIND["PersistentVolumeClaim"]]
_GROUPS = [kind for kind in BY_KIND.values() if kind.is_optional]
_OTHERS = [NODES, *(kind for kind in BY_KIND.values() if not kind.is_optional)]
_CONFIGURATIONS = "validatingwebhookconfigurations"
PAGES = tuple(f"/debug/{name}" for name in ("pods/*", "queue", "quota", "rollout", "status"))
"""Those that cost little: not those that list the cluster or take a profile."""

ROLES: dict[str, Role] = {
    "scheduler": Role(
        "What the scheduler reads, and how it binds.",
        (
            Rule("", ("pods",), ("get", *READ), why="A pod whose binding was not answered is read again."),
            Rule("", ("pods/binding",), ("create",)),
            *_patched([PODS]),
            Rule("events.k8s.io", ("events",), ("create", "patch")),
            *_read(_OTHERS),
            *_patched([_CLAIMS]),
            *_definitions([SCHEDULING_POLICIES]),
            Rule(
                _CLAIMS.group, (_CLAIMS.plural,), ("create", "delete"), why="For extended resources of device classes."
            ),
        ),
    ),
    "policies": Role(
        "Policies are ConfigMaps, or SchedulingPolicies, of one namespace; what became of them is written on them.",
        (Rule("", ("configmaps",), (*READ, "patch")), *_read([SCHEDULING_POLICIES]), *_patched([SCHEDULING_POLICIES])),
    ),
    "lease": Role(
        "The lease of the leader.",
        (
            Rule("coordination.k8s.io", ("leases",), ("create",), why="What is created has no name yet."),
            Rule("coordination.k8s.io", ("leases",), ("get", "update"), "policyengine"),
        ),
    ),
    "preemption": Role(
        "Preemption deletes its victims, `binding.verify` what does not fit beside what others bound.",
        (Rule("", ("pods",), ("delete",)),),
    ),
    "volumes": Role(
        "A pod's unbound claims are bound, or given the node they are to be provisioned for, before the pod is.",
        tuple(_patched(_VOLUMES)),
    ),
    "podGroups": Role(
        "Gangs that are PodGroup objects; their status is written back.",
        (*_read(_GROUPS), *_patched(_GROUPS), *_definitions(_GROUPS)),
    ),
    "endpoints": Role(
        "Pages that ask whose token a caller shows.",
        (
            Rule("authentication.k8s.io", ("tokenreviews",), ("create",)),
            Rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
        ),
    ),
    "otherNamespaces": Role(
        "Policies in namespaces that are not read are told so. It takes reading every ConfigMap of the cluster.",
        (
            Rule("", ("configmaps",), ("list",)),
            Rule(SCHEDULING_POLICIES.group, (SCHEDULING_POLICIES.plural,), ("list",)),
        ),
    ),
    "pages": Role(
        "The pages that `policyengine explain` and `kubectl policyengine` ask for, by a token of this account.",
        (Rule("", (), ("get",), pages=PAGES),),
    ),
    "user": Role(
        "People who ask find the Lease, and ask its pod by such a token. The proxy leads to every pod here.",
        (
            Rule("coordination.k8s.io", ("leases",), ("list",)),
            Rule("", ("pods/proxy",), ("get",)),
            Rule("", ("serviceaccounts/token",), ("create",), "policyengine-reader"),
        ),
    ),
    "annotator": Role(
        "The annotator writes measured load onto nodes; with --requested, what their pods ask for.",
        (Rule("", ("nodes",), ("list", "patch")), Rule("", ("pods",), ("list",))),
    ),
    "metricsServer": Role(
        "The annotator measures by metrics.k8s.io.", (Rule("metrics.k8s.io", ("nodes",), ("list",)),)
    ),
    "rewards": Role(
        "The rewards watch how pods end and which bindings are refused, and write what they learnt onto nodes.",
        (
            Rule("", ("pods",), READ),
            Rule("events.k8s.io", ("events",), READ),
            Rule("", ("nodes",), (*READ, "patch")),
        ),
    ),
    "rewardsState": Role(
        "What they know is one ConfigMap.", (Rule("", ("configmaps",), ("get", "patch"), "policyengine-rewards"),)
    ),
    "extender": Role(
        "An extender only looks; at namespaces where rules read their labels.",
        (Rule("", ("nodes", "pods", "namespaces"), READ),),
    ),
    "webhookSecret": Role(
        "The webhook's certificate is one Secret.",
        (Rule("", ("secrets",), ("get", "update"), "policyengine-webhook"),),
    ),
    "webhook": Role(
        "One ValidatingWebhookConfiguration is told to trust it.",
        (Rule("admissionregistration.k8s.io", (_CONFIGURATIONS,), ("get", "patch"), "policyengine"),),
    ),
}
"""What each feature needs, by its name in the chart."""

ACCOUNTS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "policyengine": (
        "base/rbac.yaml",
        {
            "scheduler": ("policyengine", ""),
            "policies": ("policyengine", POLICIES),
            "lease": ("policyengine", NAMESPACE),
            "preemption": ("policyengine-preemption", ""),
            "volumes": ("policyengine-volumes", ""),
            "podGroups": ("policyengine-podgroups", ""),
            "endpoints": ("policyengine-endpoints", ""),
        },
    ),
    "policyengine-reader": ("base/rbac.yaml", {"pages": ("policyengine-pages", "")}),
    "policyengine-annotator": ("base/rbac.yaml", {"annotator": ("policyengine-annotator", "")}),
    "policyengine-rewards": (
        "base/rbac.yaml",
        {"rewards": ("policyengine-rewards", ""), "rewardsState": ("policyengine-rewards", NAMESPACE)},
    ),
    "policyengine-extender": ("overlays/as-extender/rbac.yaml", {"extender": ("policyengine-extender", "")}),
    "policyengine-webhook": (
        "overlays/webhook/rbac.yaml",
        {"webhookSecret": ("policyengine-webhook", NAMESPACE), "webhook": ("policyengine-webhook", "")},
    ),
}
"""Account -> the manifest it is in, and the features whose rights it has: (name of the role, namespace; "" for all)."""

OPTIONS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "overlays/other-namespaces/rbac.yaml": (
        "policyengine",
        {"otherNamespaces": ("policyengine-othernamespaces", "")},
    )
}
"""Manifest -> an account of another one, and what it may do besides, where that is wanted: as in `ACCOUNTS`."""

PEOPLE = {"user": ("policyengine-user", NAMESPACE)}
"""In `base/rbac.yaml`, and bound to nobody: (name of the role, namespace), by feature."""

_MADE = "# Made by `python -m deploy.rights`."
_ACCOUNT = """apiVersion: v1
kind: ServiceAccount
metadata:
  name: {account}
  namespace: kube-system
"""
_BINDING = """apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}Binding
metadata:
  name: {name}
{scope}roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {kind}
  name: {name}
subjects:
  - kind: ServiceAccount
    name: {account}
    namespace: kube-system
"""


def manifest(path: str) -> str:
    """The text of a manifest: its accounts, each with its roles and their bindings."""
    documents = []
    for account, (where, features) in ACCOUNTS.items():
        if where == path:
            documents += [_ACCOUNT.format(account=account), *_bound(account, features)]
    if path in OPTIONS:
        documents += _bound(*OPTIONS[path])
    if path == "base/rbac.yaml":
        documents += [_role(feature, name, namespace) for feature, (name, namespace) in PEOPLE.items()]
    told = "The least that each feature needs: leave out those that you do not use."
    return f"{_MADE} {told}\n" + "---\n".join(documents)


def _bound(account: str, features: dict[str, tuple[str, str]]) -> Iterator[str]:
    """The roles of these features, each with its binding to the account."""
    for feature, (name, namespace) in features.items():
        kind, scope = _scope(namespace)
        yield _role(feature, name, namespace)
        yield _BINDING.format(kind=kind, name=name, scope=scope, account=account)


def _scope(namespace: str) -> tuple[str, str]:
    """The kind of a role, and the line that says where it holds."""
    return ("Role", f"  namespace: {namespace}\n") if namespace else ("ClusterRole", "")


def _role(feature: str, name: str, namespace: str) -> str:
    (kind, scope), role = _scope(namespace), ROLES[feature]
    rules = "\n".join(line for rule in role.rules for line in rule.lines("  "))
    head = f"apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{scope}"
    return f"# {role.why}\n{head}rules:\n{rules}\n"


def chart() -> str:
    """The text of the chart's file: feature -> rules."""
    lines = [f"{_MADE} The least that each feature needs."]
    for feature, role in ROLES.items():
        lines += [f"# {role.why}", f"{feature}:"]
        lines += [line for rule in role.rules for line in rule.lines("  ")]
    return "\n".join(lines) + "\n"


def files() -> dict[Path, str]:
    """Every file that is made, and its text."""
    manifests = {DEPLOY / path: manifest(path) for path in sorted({*OPTIONS, *(path for path, _ in ACCOUNTS.values())})}
    return manifests | {DEPLOY / "chart" / "files" / "rules.yaml": chart()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
