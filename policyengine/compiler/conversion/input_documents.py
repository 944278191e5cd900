"""What people bring from kube-scheduler: configurations, Policies, ElasticQuotas, and ConfigMaps that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from policyengine import plain_yaml
from policyengine.compiler.assemble import PluginRegistry
from policyengine.compiler.conversion.legacy_policy import read_policy
from policyengine.compiler.conversion.others import QUOTAS, quota
from policyengine.compiler.conversion.reading import ConversionError, checked, passed_over
from policyengine.compiler.conversion.scheduler_configuration import read_configuration
from policyengine.compiler.conversion.wanted import WantedProfile

CONFIGURATION: Final = "KubeSchedulerConfiguration"
POLICY: Final = "Policy"
_QUOTA: Final = "ElasticQuota"


@dataclass(frozen=True, slots=True)
class Document:
    """One that can be converted. `kind` is one of those above, or "" for one that has extenders and says no more."""

    file: str
    kind: str
    value: dict[str, Any]


def documents(file: str, values: Sequence[object]) -> list[Document]:
    """What of the documents of a file can be converted, in their order; what else stands beside it is passed over.

    Raises:
        ConversionError: none of them can.
    """
    found = [Document(file, one.get("kind", ""), one) for value in values for one in _unwrapped(value)]
    if found:
        return found
    first = values[0] if values else None
    if not isinstance(first, dict):
        raise ConversionError(f"`{file}` is not a mapping")
    kind = first.get("kind")
    told = "is missing" if kind is None else f"is `{kind}`; {CONFIGURATION}, {POLICY} and {_QUOTA} are read"
    raise ConversionError(f"`{file}`: `kind` {told}")


def _unwrapped(value: object) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        return
    kind = value.get("kind")
    if kind in (CONFIGURATION, POLICY, _QUOTA) or (kind is None and "extenders" in value):
        yield value
    elif isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _unwrapped(item)
    elif kind == "ConfigMap" and isinstance(value.get("data"), dict):
        for text in value["data"].values():
            yield from _inside(text)


def _inside(text: object) -> Iterator[dict[str, Any]]:
    """What a key of a ConfigMap holds; a text that is no YAML is something else."""
    try:
        found = plain_yaml.load(text) if isinstance(text, str) else None
    except plain_yaml.PlainYamlError:
        return
    if isinstance(found, dict) and found.get("kind") in (CONFIGURATION, POLICY):
        yield found


def wanted_profiles(given: Sequence[Document], registry: PluginRegistry) -> list[WantedProfile]:
    """The profiles of all documents, each with its quotas.

    Raises:
        ConversionError: one cannot be read, or two serve one scheduler's name.
    """
    policies = [one for one in given if one.kind == POLICY]
    found: list[WantedProfile] = []
    for one in given:
        if not one.kind:
            raise ConversionError(f"`{one.file}`: `kind` is missing")
        if one.kind == CONFIGURATION:
            found += _profiles(one, policies, registry)
    for one in policies:
        with _told(one):
            found.append(read_policy(one.value, registry))
    names = [profile.scheduler_name for profile in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConversionError(f"scheduler `{twice}` stands in two of the files; convert them one at a time")
    _share_quotas([one for one in given if one.kind == _QUOTA], found)
    return found


@contextmanager
def _told(one: Document) -> Iterator[None]:
    """Name the file in what is wrong with it."""
    try:
        yield
    except ConversionError as error:
        raise ConversionError(f"`{one.file}`: {error}") from None


def _profiles(one: Document, policies: list[Document], registry: PluginRegistry) -> list[WantedProfile]:
    """Of a v1alpha1 whose algorithm is a Policy: that Policy, under its scheduler's name."""
    with _told(one):
        found = read_configuration(one.value, registry)
        if "policy" not in checked(one.value, "configuration").get("algorithmSource", {}):
            return found
        if len(policies) != 1:
            raise ConversionError("`algorithmSource.policy` names a Policy; give that one beside it")
    policy = policies.pop()
    with _told(policy):
        wanted = read_policy(policy.value, registry)
    return [_within(found[0], wanted)]


def _within(outer: WantedProfile, wanted: WantedProfile) -> WantedProfile:
    """A Policy with what the configuration around it says: name, backoff, preemption, arguments."""
    wanted.scheduler_name, wanted.backoff = outer.scheduler_name, outer.backoff
    wanted.notes[:0] = outer.notes
    if "DefaultPreemption" not in outer.plugins:
        wanted.plugins.pop("DefaultPreemption", None)
    for name, plugin in wanted.plugins.items():
        if name in outer.plugins:
            plugin.arguments = {**outer.plugins[name].arguments, **plugin.arguments}
    return wanted


def _share_quotas(given: list[Document], profiles: list[WantedProfile]) -> None:
    counting = [profile for profile in profiles if profile.counts_quotas]
    if given and not counting:
        raise ConversionError(f"`{given[0].file}`: no profile enables {QUOTAS[0]}, so nothing counts its ElasticQuotas")
    for profile in counting:
        if not given:
            profile.notes.append(f"{QUOTAS[0]}: ElasticQuotas that are given beside the configuration become quotas")
        for one in given:
            with _told(one):
                rule, notes = quota(one.value)
            profile.rules += [rule] if rule else []
            profile.notes += notes


HEAD = {"apiVersion": "policyengine.io/v1", "kind": "SchedulerConfiguration"}
_NANOSECONDS = 10**9


def run_configuration(values: list[object]) -> tuple[dict[str, Any], list[str]]:
    """The configuration, as data for YAML; whether it is valid is for its reader to say. And notes, a sentence each.

    Raises:
        ConversionError: a document is none of the form.
    """
    extenders: list[dict[str, Any]] = []
    notes: list[str] = []
    for value in values:
        given = checked(value, "extenders").get("extenders", [])
        notes += passed_over({"extenders": given}, "extenders")
        extenders += [_extender(one) for one in given]
    return {**HEAD, "extenders": extenders}, notes


def _extender(given: dict[str, Any]) -> dict[str, Any]:
    known = {key: value for key, value in given.items() if not passed_over({key: value}, "extender")}
    if "enableHttps" in known:
        known["enableHTTPS"] = known.pop("enableHttps")
    timeout = known.get("httpTimeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        known["httpTimeout"] = f"{timeout / _NANOSECONDS:g}s"
    if known.get("httpTimeout") in ("0s", "0"):
        del known["httpTimeout"]  # the default, to kube-scheduler
    return known
