"""What is wrong with a field, as the causes of a 422, and the syntax of names and labels.

Texts are those of k8s.io/apimachinery's `util/validation`; `Cause.kind` is the machine-readable reason.
"""

import json
import re
from collections.abc import Callable

from policyengine.simulator.api_server.statuses import Cause, Json

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
QUALIFIED_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
CONFIG_KEY = r"[-._a-zA-Z0-9]+"
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{QUALIFIED_NAME}')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    f"validation is '{LABEL_VALUE}')"
)
MAX_SUBDOMAIN, MAX_LABEL = 253, 63


def quoted(value: Json) -> str:
    """A bad value as errors print it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid(field: str, value: Json, why: str) -> Cause:
    """The value is no good."""
    return Cause("FieldValueInvalid", field, f"Invalid value: {quoted(value)}: {why}")


def required(field: str, why: str = "") -> Cause:
    """The value is missing."""
    return Cause("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")


def forbidden(field: str, why: str) -> Cause:
    """The value may not be there."""
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


def duplicate(field: str, value: Json) -> Cause:
    """The value is there twice."""
    return Cause("FieldValueDuplicate", field, f"Duplicate value: {quoted(value)}")


def unsupported(field: str, value: Json, allowed: tuple[str, ...]) -> Cause:
    """The value is none of those allowed."""
    names = ", ".join(f'"{name}"' for name in allowed)
    return Cause("FieldValueNotSupported", field, f"Unsupported value: {quoted(value)}: supported values: {names}")


def too_long(field: str, limit: int) -> Cause:
    """The value is too long, in bytes."""
    return Cause("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


NameRule = Callable[[str], list[str]]


def _faults(text: str, pattern: str, limit: int, wording: str) -> list[str]:
    unit = "characters" if limit == MAX_SUBDOMAIN else "bytes"
    found = [] if len(text) <= limit else [f"must be no more than {limit} {unit}"]
    return found if re.fullmatch(pattern, text) else [*found, wording]


def subdomain(text: str) -> list[str]:
    """What is wrong with a DNS-1123 subdomain."""
    return _faults(text, SUBDOMAIN, MAX_SUBDOMAIN, SUBDOMAIN_TEXT)


def dns_label(text: str) -> list[str]:
    """What is wrong with a name that is a DNS-1123 label."""
    found = [] if len(text) <= MAX_LABEL else [f"must be no more than {MAX_LABEL} characters"]
    if re.fullmatch(LABEL, text):
        return found
    return [*found, "must not contain dots" if "." in text else LABEL_TEXT]


def path_segment(text: str) -> list[str]:
    """What is wrong with a name that only has to be a path segment."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{mark}'" for mark in "/%" if mark in text]


def qualified_name(text: str) -> list[str]:
    """What is wrong with a label key or resource name."""
    prefix, slash, name = text.rpartition("/")
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += ["prefix part " + fault for fault in subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > MAX_LABEL:
        found.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not re.fullmatch(QUALIFIED_NAME, name):
        found.append(QUALIFIED_TEXT)
    return found


def validate_labels(labels: Json, field: str) -> list[Cause]:
    """Keys and values of labels."""
    found: list[Cause] = []
    for key, value in (labels if isinstance(labels, dict) else {}).items():
        found += [invalid(field, key, why) for why in qualified_name(key)]
        found += [invalid(field, value, why) for why in _faults(str(value), LABEL_VALUE, MAX_LABEL, VALUE_TEXT)]
    return found
