"""The errors an API server answers with: one exception, and a constructor for each reason of `metav1.Status`.

Texts and codes are those of k8s.io/apimachinery's `api/errors`; clients branch on `reason` and `code`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class ApiError(Exception):
    """A refusal: HTTP `code`, machine-readable `reason`, `message` and `details` of the Status sent."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Json] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.continue_token = ""
        self.warnings: Sequence[str] = ()

    def status(self) -> dict[str, Json]:
        """The Status object as sent."""
        out: dict[str, Json] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            out["reason"] = self.reason
        if self.details is not None:
            out["details"] = self.details
        out["code"] = self.code
        return out

    @property
    def retry_after(self) -> int:
        """Seconds of the Retry-After header, 0 for none."""
        seconds = (self.details or {}).get("retryAfterSeconds")
        return seconds if isinstance(seconds, int) else 0


@dataclass(frozen=True, slots=True)
class Cause:
    """One field's fault: `kind` is the cause type (`FieldValueInvalid`), `detail` the text after the path."""

    kind: str
    field: str
    detail: str

    def text(self) -> str:
        """The fault as it stands in the message."""
        return f"{self.field}: {self.detail}"


def qualified(resource: str, group: str) -> str:
    """`leases.coordination.k8s.io`, or just `pods` of the core group."""
    return f"{resource}.{group}" if group else resource


def _details(name: str, group: str, kind: str) -> dict[str, Json]:
    given: dict[str, Json] = {"name": name, "group": group, "kind": kind}
    return {field: value for field, value in given.items() if value}


def success(details: Mapping[str, Json] | None = None, code: int | None = None) -> dict[str, Json]:
    """A Status that says all went well."""
    out: dict[str, Json] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        out["details"] = dict(details)
    if code is not None:
        out["code"] = code
    return out


def not_found(resource: str, group: str, name: str) -> ApiError:
    """404: no such object."""
    text = f'{qualified(resource, group)} "{name}" not found'
    return ApiError(404, "NotFound", text, _details(name, group, resource))


def no_such_resource() -> ApiError:
    """404: no such path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, group: str, name: str) -> ApiError:
    """409: the name is taken."""
    text = f'{qualified(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", text, _details(name, group, resource))


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    """409: the write does not fit what is stored."""
    text = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return ApiError(409, "Conflict", text, _details(name, group, resource))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422: the object breaks a rule of its kind."""
    texts = [cause.text() for cause in causes]
    once = list(dict.fromkeys(texts))
    said = once[0] if len(once) == 1 else "[" + ", ".join(once) + "]"
    details = _details(name, group, kind)
    details["causes"] = [{"reason": c.kind, "message": c.detail, "field": c.field} for c in causes]
    return ApiError(422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {said}', details)


def bad_request(message: str) -> ApiError:
    """400: the request itself makes no sense."""
    return ApiError(400, "BadRequest", message)


def forbidden(resource: str, group: str, name: str, why: str) -> ApiError:
    """403: not allowed."""
    named = f'{qualified(resource, group)} "{name}"' if name else qualified(resource, group)
    return ApiError(403, "Forbidden", f"{named} is forbidden: {why}", _details(name, group, resource))


def method_not_allowed() -> ApiError:
    """405: the path takes other methods."""
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_media_type() -> ApiError:
    """415: a body in a format this server does not read."""
    read = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    text = f"the body of the request was in an unknown format - accepted media types include: {read}"
    return ApiError(415, "UnsupportedMediaType", text)


def too_large() -> ApiError:
    """413: a body over 3 MiB."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}")


MAX_BODY = 3 * 1024 * 1024


def too_many_requests(message: str, retry_after: int) -> ApiError:
    """429: slow down."""
    details: dict[str, Json] = {"retryAfterSeconds": retry_after} if retry_after else {}
    return ApiError(429, "TooManyRequests", message, details)


def expired(message: str) -> ApiError:
    """410: the version asked for is no longer held."""
    return ApiError(410, "Expired", message)


def too_large_resource_version(asked: int, current: int) -> ApiError:
    """504: a version this server has not reached."""
    cause: dict[str, Json] = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    text = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", text, {"causes": [cause], "retryAfterSeconds": 1})


def internal(message: str) -> ApiError:
    """500: this server failed."""
    text = f"Internal error occurred: {message}"
    return ApiError(500, "InternalError", text, {"causes": [{"message": message}]})
