"""Faults over HTTP: `/policyengine/...`, outside every Kubernetes path, off unless asked for.

    GET    /policyengine/faults           the rules in force, with how often each acted
    POST   /policyengine/faults           one more: {"effect": {"type": "Fail", "code": 503}, "verb": "create", ...}
    DELETE /policyengine/faults[/NUMBER]  lift all, or one
    PUT    /policyengine/clock            {"offset": SECONDS}: how far the server's clock is off
    POST   /policyengine/restart          {"seconds": N}: every connection breaks, none is taken for N seconds, and
                                          the watch caches begin anew ({"forget": false}: they do not)
    POST   /policyengine/compact          all history is forgotten

Where credentials are configured, only `system:masters` may. Bad JSON and unknown fields are answered 400.
"""

from collections.abc import Callable
from dataclasses import asdict, fields

import msgspec

from policyengine.simulator.api_server.access.rbac import MASTERS, refusal
from policyengine.simulator.api_server.decoding.bodies import read_body
from policyengine.simulator.api_server.faults import effects
from policyengine.simulator.api_server.faults.rules import Faults, OffsetClock, Rule, Which
from policyengine.simulator.api_server.kinds.discovery import not_found_page
from policyengine.simulator.api_server.requests import Request, Response, User, json_response, parse_path
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request, method_not_allowed
from policyengine.simulator.api_server.store import Object, encode

PREFIX = "/policyengine/"
EFFECTS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *effects.REQUEST_EFFECTS,
        *(effects.Garble, effects.Duplicate, effects.Reorder, effects.Withhold, effects.Coalesce),
        *(effects.Expire, effects.NoBookmarks, effects.Cut, effects.Stall),
    )
}
RULE_FIELDS = tuple(f.name for f in fields(Which))
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class FaultApi:
    """Answers the paths below `/policyengine/`."""

    def __init__(
        self, faults: Faults, clock: OffsetClock, restart: Callable[[float, bool], None], compact: Callable[[], None]
    ) -> None:
        self._faults = faults
        self._clock = clock
        self._restart = restart
        self._compact = compact

    def answer(self, request: Request, user: User) -> Response:
        """One request; raises 400, 403 and 405."""
        if MASTERS not in user.groups:
            raise refusal(user, parse_path(request.method, request.path, request.query))
        what, _, rest = request.path.removeprefix(PREFIX).rstrip("/").partition("/")
        if what == "faults":
            return self._rules(request, rest)
        wanted = {"clock": "PUT", "restart": "POST", "compact": "POST"}.get(what)
        if wanted is None or rest:
            return not_found_page()
        if request.method != wanted:
            raise method_not_allowed()
        body = _object(request)
        if what == "clock":
            self._clock.offset = _number(body, "offset")
        elif what == "restart":
            self._restart(_number(body, "seconds"), body.get("forget") is not False)
        else:
            self._compact()
        return json_response(200, {})

    def _rules(self, request: Request, number: str) -> Response:
        faults = self._faults
        found = [rule for rule in faults.rules if not number or str(rule.number) == number]
        if number and not found:
            return not_found_page()
        match request.method:
            case "GET":
                return json_response(200, {"faults": [shown(rule) for rule in found]})
            case "POST" if not number:
                return json_response(201, shown(faults.put(read_rule(_object(request)))))
            case "DELETE":
                for rule in found:
                    faults.rules.remove(rule)
                return json_response(200, {})
        raise method_not_allowed()


def _object(request: Request) -> Object:
    body = read_body(request, "Fault") if request.body else {}
    if not isinstance(body, dict):
        raise bad_request("a JSON object is wanted")
    return body


def _number(body: Object, name: str) -> float:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_request(f"`{name}` must be a number of seconds")
    return float(value)


def read_rule(body: Object) -> Rule:
    """A rule of its JSON; raises a 400."""
    given = {name: value for name, value in body.items() if name != "effect"}
    unknown = sorted(given.keys() - set(RULE_FIELDS))
    if unknown:
        raise bad_request(f"a fault has no field `{unknown[0]}`; it has effect, {', '.join(RULE_FIELDS)}")
    try:
        which = msgspec.convert(given, Which)
    except msgspec.ValidationError as error:
        raise bad_request(f"the fault cannot be read: {error}") from error
    effect = body.get("effect")
    if not isinstance(effect, dict):
        raise bad_request(f"`effect` must be an object with a `type`: one of {', '.join(EFFECTS)}")
    return Rule(effect=_effect(effect), **asdict(which))


def _effect(body: Object) -> effects.Effect | effects.LineEffect:
    name = str(body.get("type"))
    given = {key: value for key, value in body.items() if key != "type"}
    if name not in EFFECTS:
        raise bad_request(f"there is no effect `{name}`; there are {', '.join(EFFECTS)}")
    if name == "Fail":
        return effects.Fail(_error(given))
    if name == "Meanwhile":
        return effects.Meanwhile(_requests(given.get("requests")), given.get("after") is True)
    if name == "Garble":
        text = given.get("text")
        return effects.Garble(text.encode() if isinstance(text, str) else None)
    known = {f.name for f in fields(EFFECTS[name])}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise bad_request(f"the effect `{name}` has no field `{unknown[0]}`")
    try:
        made: effects.Effect | effects.LineEffect = msgspec.convert(given, EFFECTS[name])
    except msgspec.ValidationError as error:
        raise bad_request(f"the effect `{name}` cannot be read: {error}") from error
    return made


def _error(given: Object) -> ApiError:
    code = given.get("code")
    if not isinstance(code, int) or isinstance(code, bool) or not 400 <= code <= 599:
        raise bad_request("`Fail` needs a `code` from 400 to 599")
    after = given.get("retryAfterSeconds")
    details: dict[str, Json] = {"retryAfterSeconds": after} if isinstance(after, int) else {}
    message = str(given.get("message") or "a fault was injected")
    return ApiError(code, str(given.get("reason") or REASONS.get(code, "")), message, details)


def _requests(given: Json) -> tuple[Request, ...]:
    made: list[Request] = []
    for one in given if isinstance(given, list) else []:
        if not isinstance(one, dict) or not str(one.get("path", "")).startswith("/"):
            raise bad_request("`requests` are objects with method, path, body and contentType")
        content = str(one.get("contentType") or "application/json")
        body = encode(one["body"]) if one.get("body") is not None else b""
        headers = {"content-type": content, "user-agent": "meanwhile"}
        made.append(Request(str(one.get("method") or "GET"), str(one["path"]), {}, headers, body))
    if not made:
        raise bad_request("`Meanwhile` needs `requests`")
    return tuple(made)


def shown(rule: Rule) -> Object:
    """A rule as JSON."""
    out: Object = {"number": rule.number, "effect": {"type": type(rule.effect).__name__}, "acted": rule.acted}
    for name in RULE_FIELDS:
        value = getattr(rule, name)
        if value not in ("", None):
            out[name] = value
    return out
