"""The extenders of a configuration of either form, as a configuration file of `policyengine run`.

The old `Policy` writes `enableHttps` and the time-out in nanoseconds.
"""

from __future__ import annotations

from typing import Any

from policyengine.compiler.conversion.reading import checked, passed_over

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
