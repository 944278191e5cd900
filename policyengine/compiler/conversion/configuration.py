"""`KubeSchedulerConfiguration` (kubescheduler.config.k8s.io/v1), read as kube-scheduler reads it.

Rules (v1.36, apis/config/v1/default_plugins.go `mergePluginSet`, framework/runtime/framework.go
`expandMultiPointPlugins`):
1. A profile's multiPoint set is merged into the default one: `disabled` takes out (`*`: everything), an `enabled` entry
   takes the default's place, others are appended.
2. At each extension point the multiPoint plugins that implement it are added, unless they are disabled there or
   enabled there on their own, which is then what counts.
3. A score without a weight has weight 1.

Its extenders belong into the configuration file of `policyengine run`. The old `Policy` has them too, but writes
`enableHttps` and the time-out in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.plugin_entry import ArgumentError, PluginEntry


class ConversionError(ValueError):
    """A configuration that cannot be read; one sentence that says where and what was expected."""


@dataclass(slots=True)
class WantedPlugin:
    """One in-tree plugin as a profile has it."""

    filters: bool
    """Whether it filters; for a plugin without a filter, whether it is there at all."""
    weight: int | None
    """Of its score; None where it does not score."""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class WantedProfile:
    """One profile."""

    scheduler_name: str
    plugins: dict[str, WantedPlugin]
    """By name; a plugin that is switched off is absent."""
    rules: list[str] = field(default_factory=list)
    """Members of the policy that stand for something no plugin does, as text."""
    notes: list[str] = field(default_factory=list)
    """What has no equivalent, a sentence each."""
    backoff: tuple[float, float] | None = None
    """Seconds, where they are not the default."""


class Document:
    """A mapping at a path such as `profiles[0].plugins`. Every reader raises `ConversionError` for a wrong form."""

    def __init__(self, value: object, path: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise ConversionError(f"`{path or 'the document'}` is not a mapping")
        self._value: Mapping[Any, Any] = value
        self.path = path

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether the field is there and not null or empty."""
        return self._value.get(name) not in (None, [], {}, "")

    def given(self, name: str) -> bool:
        """Whether the field is there and not null, be it empty."""
        return self._value.get(name) is not None

    def given_as(self, name: str) -> tuple[str, object]:
        """(the field, its value), whatever that is."""
        return name, self._value.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        """A string; without a default it must be there."""
        value = self._value.get(name, default)
        if not isinstance(value, str) or not value:
            raise ConversionError(f"`{self.at(name)}` is {'missing' if value is None else 'not a name'}")
        return value

    def number(self, name: str, default: float) -> float:
        """A number that is not negative."""
        value = self._value.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConversionError(f"`{self.at(name)}` is not a number of at least 0")
        return float(value)

    def whole(self, name: str) -> int | None:
        """An int, None where it is absent."""
        value = self._value.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ConversionError(f"`{self.at(name)}` is not an int")
        return value

    def flag(self, name: str) -> bool:
        """A bool, false where it is absent."""
        value = self._value.get(name, False)
        if not isinstance(value, bool):
            raise ConversionError(f"`{self.at(name)}` is neither true nor false")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of strings; empty where it is absent."""
        value = self._value.get(name) or []
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise ConversionError(f"`{self.at(name)}` is not a list of names")
        return value

    def plain_list(self, name: str) -> list[dict[str, Any]]:
        """A list of mappings as plain data, without their nulls."""
        return [
            {str(key): value for key, value in one._value.items() if value is not None} for one in self.listed(name)
        ]

    def inner(self, name: str) -> Document:
        """A mapping; empty where it is absent."""
        return Document(self._value.get(name), self.at(name))

    def plain(self, name: str) -> dict[str, Any]:
        """A mapping as plain data, without its nulls."""
        return {str(key): value for key, value in self.inner(name)._value.items() if value is not None}

    def listed(self, name: str) -> list[Document]:
        """A list of mappings; empty where it is absent."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ConversionError(f"`{self.at(name)}` is not a list")
        return [Document(one, f"{self.at(name)}[{number}]") for number, one in enumerate(value)]

    def names(self, name: str) -> set[str]:
        """The names in a list of `{name: …}`."""
        return {one.text("name") for one in self.listed(name)}

    def weights(self, name: str) -> dict[str, int | None]:
        """{name: weight} of a list of `{name: …, weight: …}`, each name once."""
        found: dict[str, int | None] = {}
        for one in self.listed(name):
            plugin = one.text("name")
            if plugin in found:
                raise ConversionError(f"`{one.path}`: `{plugin}` is enabled twice")
            found[plugin] = one.whole("weight")
        return found


DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_BACKOFF = (1.0, 10.0)
VERSIONS = ("v1", "v1beta3", "v1beta2")
POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)
_ELSEWHERE = {
    "leaderElection": "leader election is set in the configuration file of `policyengine run`",
    "clientConnection": "the client's QPS and burst are set in the configuration file of `policyengine run`",
    "extenders": "extenders are set in the configuration file of `policyengine run`; --to run prints it",
    "percentageOfNodesToScore": "every node is looked at, whatever `percentageOfNodesToScore` says",
    "parallelism": "`parallelism` has no meaning here: a decision is a few operations over all nodes at once",
}
_PLAIN = (("percentageOfNodesToScore", 0), ("parallelism", 16))
"""Defaults that need no word."""
_INSTEAD = {
    "Coscheduling": "write a `gang` rule",
    "GangScheduling": "write a `gang` rule",
    "CapacityScheduling": "write `quota` rules",
    "QOSSort": "write `queue { order by pod.priority desc, pod.qos desc }`",
    "NodeResourcesAllocatable": "write a `score` rule over `node.allocatable`",
}
"""Plugins of kubernetes-sigs/scheduler-plugins -> what takes their place."""

_EVEN = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
DEFAULT_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "DynamicResources": {"filterTimeout": "10s", "bindingTimeout": "10m0s"},
    "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
    "NodeResourcesBalancedAllocation": {"resources": _EVEN},
    "NodeResourcesFit": {"scoringStrategy": {"type": "LeastAllocated", "resources": _EVEN}},
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {"bindTimeoutSeconds": 600},
}
"""What kube-scheduler fills in (apis/config/v1/defaults.go), and so writes into a configuration that it prints."""

Enabled = dict[str, int | None]
"""Plugin -> its weight there."""


def read_configuration(value: object, registry: PluginRegistry) -> list[WantedProfile]:
    """The profiles of a configuration. Raises `ConversionError`."""
    root = Document(value, "")
    version = root.text("apiVersion").rpartition("/")[2]
    if version not in VERSIONS:
        raise ConversionError(f"`apiVersion` ends in `{version}`; {', '.join(f'`{one}`' for one in VERSIONS)} are read")
    shared = [sentence for name, sentence in _ELSEWHERE.items() if root.has(name) and root.given_as(name) not in _PLAIN]
    if version != "v1":
        shared.append(f"{version} was read as v1, whose default plugins and weights are kube-scheduler 1.36's")
    backoff = (
        root.number("podInitialBackoffSeconds", DEFAULT_BACKOFF[0]),
        root.number("podMaxBackoffSeconds", DEFAULT_BACKOFF[1]),
    )
    profiles = [_profile(one, registry) for one in root.listed("profiles")] or [_profile(Document({}, ""), registry)]
    names = [profile.scheduler_name for profile in profiles]
    if len(set(names)) < len(names):
        raise ConversionError("two profiles have one `schedulerName`")
    for profile in profiles:
        profile.notes[:0] = shared
        profile.backoff = None if backoff == DEFAULT_BACKOFF else backoff
    return profiles


def _profile(document: Document, registry: PluginRegistry) -> WantedProfile:
    wanted = WantedProfile(document.text("schedulerName", DEFAULT_SCHEDULER), {})
    if document.has("percentageOfNodesToScore"):
        wanted.notes.append(_ELSEWHERE["percentageOfNodesToScore"])
    sets = document.inner("plugins")
    multi = _merged(registry, sets.inner("multiPoint"))
    enabled = {point: _at_point(point, multi, sets.inner(point), registry) for point in POINTS}
    for name in {**multi, **{name: None for plugins in enabled.values() for name in plugins}}:
        if name not in registry and name != "DefaultBinder":
            instead = _INSTEAD.get(name)
            wanted.notes.append(f"`{name}` is no plugin of kube-scheduler's own" + (f": {instead}" if instead else ""))
    arguments = _arguments(document, registry, wanted)
    for name, entry in registry.items():
        _want(wanted, entry, enabled, arguments.get(name, {}))
    sorting = [name for name in enabled["queueSort"] if name not in registry]
    if sets.has("queueSort") and not sorting and "PrioritySort" not in enabled["queueSort"]:
        wanted.notes.append("`queueSort` is empty; the order by priority is kept")
    return wanted


def _merged(registry: PluginRegistry, custom: Document) -> Enabled:
    """Rule 1."""
    off = custom.names("disabled")
    given = custom.weights("enabled")
    defaults: Enabled = {name: entry.default_weight for name, entry in registry.items() if entry.in_base}
    kept = {} if "*" in off else {name: given.get(name, weight) for name, weight in defaults.items() if name not in off}
    return {**kept, **{name: weight for name, weight in given.items() if name not in kept}}


def _at_point(point: str, multi: Enabled, custom: Document, registry: PluginRegistry) -> Enabled:
    """Rule 2. Of plugins outside the registry it is not known what they implement: they are taken to be everywhere."""
    off, own = custom.names("disabled"), custom.weights("enabled")
    if "*" in off:
        return own
    expanded = {
        name: weight
        for name, weight in multi.items()
        if name not in off and name not in own and (name not in registry or _implements(registry[name], point))
    }
    return {**expanded, **own}


def _implements(entry: PluginEntry, point: str) -> bool:
    if point in ("preFilter", "filter"):
        return entry.filters
    if point in ("preScore", "score"):
        return entry.scores
    return not entry.filters and not entry.scores


def _want(wanted: WantedProfile, entry: PluginEntry, enabled: Mapping[str, Enabled], arguments: Any) -> None:
    name = entry.name
    filters = name in enabled["filter"]
    weight = (enabled["score"][name] or 1) if entry.scores and name in enabled["score"] else None
    if entry.filters and not filters and weight is not None:
        wanted.notes.append(f"`{name}` was to score only; here it filters as well")
        filters = True
    if not entry.filters:
        filters = weight is not None if entry.scores else any(name in plugins for plugins in enabled.values())
    if filters:
        wanted.plugins[name] = WantedPlugin(filters, weight, arguments)
        halves = (("preFilter", "filter"), ("preScore", "score"))
        for before, after in halves:
            if name in enabled[after] and name not in enabled[before] and _implements(entry, after):
                wanted.notes.append(f"`{name}` cannot do without its {before}; it is kept")


def _arguments(document: Document, registry: PluginRegistry, wanted: WantedProfile) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in document.listed("pluginConfig"):
        name = one.text("name")
        given = {key: value for key, value in one.plain("args").items() if key not in ("apiVersion", "kind")}
        if name not in registry:
            wanted.notes.append(f"the arguments of `{name}` were left out")
            continue
        if name in found:
            raise ConversionError(f"`{one.path}`: the arguments of `{name}` are given twice")
        try:
            registry[name].build(given)
        except ArgumentError as error:
            raise ConversionError(f"`{one.path}.args`: {error}") from None
        defaults = DEFAULT_ARGUMENTS.get(name, {})
        found[name] = {key: value for key, value in given.items() if defaults.get(key) != value}
    return found


HEAD = {"apiVersion": "policyengine.io/v1", "kind": "SchedulerConfiguration"}
_NANOSECONDS = 10**9


def run_configuration(value: object) -> dict[str, Any]:
    """The configuration, as data for YAML; whether it is valid is for its reader to say. Raises `ConversionError`."""
    if not isinstance(value, Mapping):
        raise ConversionError("`the document` is not a mapping")
    extenders = value.get("extenders") or []
    if not isinstance(extenders, list) or not all(isinstance(one, Mapping) for one in extenders):
        raise ConversionError("`extenders` is not a list of mappings")
    return {**HEAD, "extenders": [_extender(one) for one in extenders]}


def _extender(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in given.items() if value is not None}
    if "enableHttps" in found:
        found["enableHTTPS"] = found.pop("enableHttps")
    timeout = found.get("httpTimeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        found["httpTimeout"] = f"{timeout / _NANOSECONDS:g}s"
    if found.get("httpTimeout") in ("0s", "0"):
        del found["httpTimeout"]  # the default, to kube-scheduler
    return found
