"""The query of a list or watch: selectors, versions, limits and time-outs, and the combinations that are refused.

Rules: https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
"""

from collections.abc import Mapping
from dataclasses import dataclass

from policyengine.plugins.selectors.label_selector import PodSelector
from policyengine.simulator.api_server.http_requests import is_true
from policyengine.simulator.api_server.reading.selectors import (
    FieldSelector,
    labels_of,
    matches_fields,
    parse_fields,
    parse_labels,
)
from policyengine.simulator.api_server.reading.watch import Predicate
from policyengine.simulator.api_server.statuses import ApiError, Cause, bad_request, invalid
from policyengine.simulator.api_server.storage import Object

NOT_OLDER_THAN, EXACT = "NotOlderThan", "Exact"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A list's or watch's query, checked."""

    labels: PodSelector
    fields: FieldSelector
    version: str
    match: str
    limit: int
    token: str
    timeout: float | None
    bookmarks: bool
    initial_events: bool | None

    @property
    def revision(self) -> int:
        """The version asked for, 0 for none."""
        return int(self.version or 0)

    def predicate(self) -> Predicate | None:
        """Whether an object is selected; None selects all."""
        if self.labels.empty and not self.fields:
            return None
        return self._selects

    def _selects(self, obj: Object) -> bool:
        return self.labels.matches(labels_of(obj)) and matches_fields(self.fields, obj)


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error


def parse_options(query: Mapping[str, str], watching: bool, name: str = "") -> ListOptions:
    """The options of a query; raises 400 and 422 as the real server does."""
    version = query.get("resourceVersion", "")
    if watching:
        check_version(version)
    elif version and not version.isdecimal():
        raise bad_request(f"invalid resource version: resourceVersion: {_no_number(version)}")
    by_name = f"metadata.name={name}" if name else ""
    selector = ",".join(part for part in (by_name, query.get("fieldSelector", "")) if part)
    seconds = _integer(query, "timeoutSeconds")
    initial = query.get("sendInitialEvents")
    options = ListOptions(
        labels=parse_labels(query.get("labelSelector", "")),
        fields=parse_fields(selector),
        version=version,
        match=query.get("resourceVersionMatch", ""),
        limit=_integer(query, "limit"),
        token=query.get("continue", ""),
        timeout=float(seconds) if seconds > 0 else None,
        bookmarks=is_true(query.get("allowWatchBookmarks")),
        initial_events=None if initial is None else is_true(initial),
    )
    _check(options, watching)
    return options


def check_version(version: str) -> None:
    """Raise what a resourceVersion that is no number is answered with where one object is read, or watched."""
    if version and not version.isdecimal():
        raise ApiError(500, "", f"resourceVersion: {_no_number(version)}")


def _no_number(version: str) -> str:
    return f'Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'


def _forbidden(field: str, why: str) -> Cause:
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


MATCH = "resourceVersionMatch"


def _check(options: ListOptions, watching: bool) -> None:
    faults = _watch_faults(options) if watching else _list_faults(options)
    if faults:
        raise invalid("ListOptions", "meta.k8s.io", "", faults)


def _watch_faults(options: ListOptions) -> list[Cause]:
    faults: list[Cause] = []
    if options.initial_events is not None:
        if options.match != NOT_OLDER_THAN:
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            faults.append(_forbidden(MATCH, why))
        if options.match not in ("", NOT_OLDER_THAN):
            text = f'Unsupported value: "{options.match}": supported values: "NotOlderThan"'
            faults.append(Cause("FieldValueNotSupported", MATCH, text))
    elif options.match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        faults.append(_forbidden(MATCH, why))
    if options.token:
        faults.append(_forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    return faults


def _list_faults(options: ListOptions) -> list[Cause]:
    faults: list[Cause] = []
    if options.initial_events is not None:
        faults.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not options.match:
        return faults
    if not options.version:
        faults.append(_forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if options.token:
        faults.append(_forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    if options.match not in (EXACT, NOT_OLDER_THAN):
        text = f'Unsupported value: "{options.match}": supported values: "Exact", "NotOlderThan", ""'
        faults.append(Cause("FieldValueNotSupported", MATCH, text))
    if options.match == EXACT and options.version == "0":
        faults.append(_forbidden(MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return faults
