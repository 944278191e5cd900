"""The configuration file of `policyengine run`: read, checked, completed by defaults.

`configuration.schema.json` is the form, and says every default once. What is wrong is said all at once, each with its
line, its path and what is wanted. Flags of the command line are laid over the file before it is checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

from policyengine import regular_file
from policyengine.checked_yaml import LARGEST, CheckedYaml, CheckedYamlError, path_text, schema_problems, told_of
from policyengine.control_characters import escaped
from policyengine.kube.leader import LeaseSettings
from policyengine.language.values import parse_duration
from policyengine.plugins.selectors.label_selector import parse_requirements

API_VERSION = "policyengine.io/v1"
KIND = "SchedulerConfiguration"
_EMPTY = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"
_FORMS = {
    "address": "[HOST]:PORT",
    "namespace": "name of a namespace: lower case letters, digits and `-`, at most 63",
    "resourceNamespace": "name of a namespace: lower case letters, digits and `-`, at most 63",
    "resourceName": "name of a Lease: lower case letters, digits, `-` and `.`",
    "from": "name, or the beginning of one and `*`",
    "schedulerNames": "name, or the beginning of one and `*`",
    "annotations": "annotation key, `DOMAIN/*` or `*`",
    "endpoint": "URL such as `http://localhost:4318`",
    "urlPrefix": "URL such as `http://127.0.0.1:8888/scheduler`",
}
"""What a field wants, where a pattern says it."""

Place = tuple[str | int, ...]
"""The way from the root of the document to a value."""


class ConfigurationError(ValueError):
    """A configuration that cannot be used: one line for each thing that is wrong."""


@dataclass(frozen=True)
class Configuration:
    """An effective configuration: every field is there, as the file has it."""

    data: Mapping[str, Any]
    written: Mapping[str, Any]
    """What was written, without the defaults."""

    @property
    def lease(self) -> LeaseSettings | None:
        """The lease to be held; None without leader election."""
        given = self.data["leaderElection"]
        return _lease(given) if given["leaderElect"] else None

    def seconds(self, section: str, name: str) -> float:
        """A field that is a duration."""
        return seconds_of(self.data[section][name])


def load(path: Path | None, flags: Mapping[str, Mapping[str, Any]]) -> Configuration:
    """The file with the flags laid over it (section -> field -> value) and defaults for all the rest.

    Raises `ConfigurationError`.
    """
    name = "the command line"
    text = _EMPTY
    if path is not None:
        name = f"`{path}`"
        try:
            text = regular_file.read(path, LARGEST).decode()
        except OSError as error:
            raise ConfigurationError(f"{name} cannot be read: {regular_file.reason(error)}") from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"{name} is not UTF-8") from None
    return read(text, name, flags)


def read(text: str, name: str, flags: Mapping[str, Mapping[str, Any]] | None = None) -> Configuration:
    """As `load`, from a text; `name` says in messages where it stands."""
    try:
        document = CheckedYaml(text, {})
    except CheckedYamlError as error:
        raise ConfigurationError("\n".join(f"{name}: {sentence}" for sentence in error.sentences)) from None
    laid = _laid_over(document.data, flags or {})
    found = list(_problems(laid))
    if not found:
        effective = _completed(laid, schema())
        found = list(_contradictions(effective))
        if not found:
            return Configuration(effective, laid)
    found.sort(key=lambda one: document.line_column(one[0]))
    raise ConfigurationError("\n".join(f"{name}: {document.wrong(place, escaped(told))}" for place, told in found))


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of the file."""
    text = files("policyengine.kube.config").joinpath("configuration.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def seconds_of(duration: str) -> float:
    """`1m30s` -> 90.0."""
    return parse_duration(duration) / 1e9


def _laid_over(data: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `flags` beat those of `data`, at every depth."""
    laid = dict(data)
    for name, value in flags.items():
        given = laid.get(name)
        if isinstance(value, Mapping) and isinstance(given, Mapping):
            laid[name] = _laid_over(given, value)
        else:
            laid[name] = value
    return laid


# ---- what is wrong


def _problems(data: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """What the schema finds, in the order of the file's paths."""
    return ((tuple(place), told) for place, told in schema_problems(data, schema(), _told))


def _told(error: Any) -> str:
    return f"`{error.instance}` is no {_wanted(error)}" if error.validator == "pattern" else told_of(error)


def _wanted(error: Any) -> str:
    """What a text that has not the form of its field should have been."""
    if error.schema == schema()["$defs"]["duration"]:
        return "duration such as `15s` or `1m30s`"
    field = next(one for one in reversed(error.absolute_path) if isinstance(one, str))
    return _FORMS.get(field, f"text of the form `{error.schema['pattern']}`")


def _contradictions(data: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """What no form can say: fields that are wrong together, and values that cannot be worked with."""
    yield from _of_client(data["clientConnection"])
    if isinstance(parse_requirements(data["policies"]["selector"]), str):
        told = f"`policies.selector`: `{data['policies']['selector']}` is no label selector such as `a=b,!c`"
        yield ("policies", "selector"), told
    if not seconds_of(data["policies"]["cpuLimit"]):
        yield ("policies", "cpuLimit"), "`policies.cpuLimit` must be above zero: no ConfigMap would be accepted"
    problem = _lease(data["leaderElection"]).problem()
    if problem and data["leaderElection"]["leaderElect"]:
        yield ("leaderElection",), f"`leaderElection`: {problem}"
    yield from _of_endpoints(data["endpoints"])
    yield from _of_extenders(data["extenders"])


def _of_client(given: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    if not isfinite(given["qps"]):
        yield ("clientConnection", "qps"), "`clientConnection.qps` is no finite number; 0 is no limit"
    if not seconds_of(given["requestTimeout"]):
        told = "`clientConnection.requestTimeout` must be above zero: no request would be answered in time"
        yield ("clientConnection", "requestTimeout"), told


def _of_endpoints(given: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    place: Place = ("endpoints",)
    for name, needed in (
        ("tlsPrivateKeyFile", "tlsCertFile"),
        ("clientCAFile", "tlsCertFile"),
        ("clientNames", "clientCAFile"),
    ):
        if given[name] and not given[needed]:
            yield (*place, name), f"`endpoints.{name}` needs `{needed}`"
    host, _, port = given["address"].rpartition(":")
    if port and int(port) > 65535:
        yield (*place, "address"), f"`endpoints.address`: `{port}` is no port"
    asks = given["authentication"] != "None" or given["clientCAFile"]
    if given["address"] and given["debug"] and not is_loopback(host) and not asks:
        yield (
            (*place, "address"),
            f"`endpoints.address`: `{host or 'every address'}` shows /debug to other machines; "
            "set `authentication: TokenReview`, or `debug: false`",
        )


def _of_extenders(extenders: list[Mapping[str, Any]]) -> Iterator[tuple[Place, str]]:
    """kube-scheduler's own rules (apis/config/validation)."""
    managed: set[str] = set()
    binders = [number for number, extender in enumerate(extenders) if extender["bindVerb"]]
    for number in binders[1:]:
        yield ("extenders", number, "bindVerb"), f"`extenders.{number}.bindVerb`: only one extender binds"
    for number, extender in enumerate(extenders):
        place: Place = ("extenders", number)
        if extender["prioritizeVerb"] and extender["weight"] <= 0:
            yield (*place, "weight"), f"`extenders.{number}.weight` must be positive where there is a prioritizeVerb"
        if not seconds_of(extender["httpTimeout"]):
            yield (*place, "httpTimeout"), f"`extenders.{number}.httpTimeout` must be above zero"
        for at, resource in enumerate(extender["managedResources"]):
            where: Place = (*place, "managedResources", at)
            if resource["name"] in managed:
                yield where, f"`{path_text(where)}`: `{resource['name']}` is managed by two extenders"
            managed.add(resource["name"])


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    return host.strip("[]") in ("127.0.0.1", "::1", "localhost")


# ---- what is not said


def _completed(value: Any, form: Mapping[str, Any]) -> Any:
    """A value with the defaults of its schema, nested."""
    form = _resolved(form)
    if isinstance(value, Mapping) and "properties" in form:
        done = {}
        for key, of_key in form["properties"].items():
            if key in value or "default" in of_key:
                done[key] = _completed(value.get(key, of_key.get("default")), of_key)
        return done
    if isinstance(value, list) and "items" in form:
        return [_completed(item, form["items"]) for item in value]
    return value


def _resolved(form: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = form.get("$ref")
    found: Mapping[str, Any] = schema()["$defs"][reference.rpartition("/")[2]] if reference else form
    return found


def _lease(given: Mapping[str, Any]) -> LeaseSettings:
    return LeaseSettings(
        given["resourceName"],
        given["resourceNamespace"],
        seconds_of(given["leaseDuration"]),
        seconds_of(given["renewDeadline"]),
        seconds_of(given["retryPeriod"]),
    )
