"""Continue tokens: the version of a list's first page and the key its next page starts from, as base64 of JSON.

The form is k8s.io/apiserver's; version -1 means: go on from that key, at whatever version is the newest.
"""

import base64
import json
import posixpath
import re

from policyengine.simulator.api_server.decoding.go_json import fault
from policyengine.simulator.api_server.statuses import ApiError, bad_request

VERSION = "meta.k8s.io/v1"
NEWEST = -1
_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")
_BAD = "continue key is not valid"


def make_token(revision: int, after: str) -> str:
    """A token for the page that begins behind the key `after`."""
    text = json.dumps({"v": VERSION, "rv": revision, "start": f"/{after}\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_token(token: str) -> tuple[int, str]:
    """`(revision, key to start from)`; raises a 400."""
    raw = _decode(token)
    try:
        found = json.loads(raw)
    except ValueError as error:
        raise _invalid(f": {fault(raw)}") from error
    held = found if isinstance(found, dict) else {}
    version, revision, start = held.get("v", ""), held.get("rv", 0), held.get("start", "")
    if not isinstance(version, str) or not isinstance(start, str) or type(revision) is not int:
        raise _invalid(": json: cannot unmarshal into Go value of type storage.continueToken")
    if version != VERSION:
        raise _invalid(f": server does not recognize this encoded version {version}")
    if revision == 0:
        raise _invalid(f": incorrect encoded start resourceVersion (version {VERSION})")
    if not start:
        raise _invalid(f": encoded start key empty (version {VERSION})")
    rooted = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(rooted) != rooted:
        raise _invalid(f": {start}")
    return revision, rooted[1:]


def _decode(token: str) -> bytes:
    good = _ALPHABET.match(token)
    at = good.end() if good else 0
    if at < len(token) or len(token) % 4 == 1:
        raise _invalid(f": illegal base64 data at input byte {at}")
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def _invalid(why: str) -> ApiError:
    return bad_request(f"invalid continue token: {_BAD}{why}")
