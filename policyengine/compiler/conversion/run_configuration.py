"""What of a kube-scheduler configuration belongs into the configuration file of `policyengine run`: its extenders.

Both are read: `KubeSchedulerConfiguration`, whose extenders have our form already, and the old `Policy`, which writes
`enableHttps` and the time-out in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policyengine.compiler.conversion.wanted import ConversionError

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
