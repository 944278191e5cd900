"""Lists, watches and conflicts: what resourceVersion, limit, continue and time-outs mean."""

from base64 import urlsafe_b64encode
from typing import Any

from tests.record.session import Session

SPACE = "/api/v1/namespaces/rec-reads"
MAPS = f"{SPACE}/configmaps"
STREAM = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
NO_START = '{"v":"meta.k8s.io/v1","rv":5}'
CLIMBING = '{"v":"meta.k8s.io/v1","rv":5,"start":"../x"}'
MERGE = "application/merge-patch+json"


def config_map(name: str, value: str = "v", **labels: str) -> dict[str, Any]:
    """A small object."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"k": value}}


def version(listed: Any) -> int:
    """The resourceVersion of an answer."""
    return int(listed["metadata"]["resourceVersion"])


def token(text: str) -> str:
    """A continue token of any content."""
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


async def run(session: Session) -> None:
    """All of it."""
    await session.quietly("POST", "/api/v1/namespaces", {"metadata": {"name": "rec-reads"}})
    for at in range(5):
        await session.quietly("POST", MAPS, config_map(f"c{at}", parity=str(at % 2)))
    await lists(session)
    await bad_lists(session)
    await watches(session)
    await bad_watches(session)
    await gets(session)
    await conflicts(session)
    await past(session)


async def lists(session: Session) -> None:
    """Versions and pages."""
    ask = session.ask
    first = await ask("list: version unset", "GET", MAPS)
    here = version(first)
    await ask("list: version 0", "GET", f"{MAPS}?resourceVersion=0")
    await ask("list: version 0, one page", "GET", f"{MAPS}?resourceVersion=0&limit=2")
    await session.quietly("DELETE", f"{MAPS}/c1")
    await ask("list: not older than an old version shows the newest", "GET", f"{MAPS}?resourceVersion={here}")
    query = f"resourceVersion={here}&resourceVersionMatch=NotOlderThan"
    await ask("list: NotOlderThan said", "GET", f"{MAPS}?{query}")
    await ask("list: NotOlderThan 0", "GET", f"{MAPS}?resourceVersion=0&resourceVersionMatch=NotOlderThan")
    exact = f"resourceVersion={here}&resourceVersionMatch=Exact"
    await ask("list: exact shows the past", "GET", f"{MAPS}?{exact}")
    page = await ask("list: exact, one page", "GET", f"{MAPS}?{exact}&limit=2")
    await ask("list: exact, next page", "GET", f"{MAPS}?limit=2&continue={page['metadata']['continue']}")
    page = await ask(
        "list: a page of an old version is of that version", "GET", f"{MAPS}?resourceVersion={here}&limit=3"
    )
    await ask("list: its next page", "GET", f"{MAPS}?limit=3&continue={page['metadata']['continue']}")
    page = await ask("list: page of one", "GET", f"{MAPS}?limit=1")
    await session.quietly("POST", MAPS, config_map("c00"))
    following = f"{MAPS}?continue={page['metadata']['continue']}"
    await ask("list: the rest without a limit, without what came between", "GET", following)
    await ask("list: a continued list with a version", "GET", f"{following}&resourceVersion={here}")
    await ask("list: a continued list with version 0", "GET", f"{following}&resourceVersion=0")
    await ask("list: by label, one page", "GET", f"{MAPS}?labelSelector=parity%3D0&limit=1")
    await ask("list: by name", "GET", f"{MAPS}?fieldSelector=metadata.name%3Dc2")
    await ask("list: empty", "GET", f"{SPACE}/pods?limit=2")
    await ask("list: negative limit", "GET", f"{MAPS}?limit=-1&fieldSelector=metadata.name%3Dc2")


async def bad_lists(session: Session) -> None:
    """Queries that make no sense."""
    bad = {
        "match without a version": "resourceVersionMatch=Exact",
        "exact 0": "resourceVersion=0&resourceVersionMatch=Exact",
        "unknown match": "resourceVersion=5&resourceVersionMatch=Newest",
        "match with continue": f"resourceVersion=5&resourceVersionMatch=Exact&continue={token('{}')}",
        "version is no number": "resourceVersion=abc",
        "negative version": "resourceVersion=-1",
        "limit is no number": "limit=abc",
        "timeout is no number": "timeoutSeconds=abc",
        "initial events of a list": "sendInitialEvents=true",
        "continue is no base64": "continue=%3D%3D%3D",
        "continue is no JSON": f"continue={token('nonsense')}",
        "continue of another form": f"continue={token('{}')}",
        "continue without a start": f"continue={token(NO_START)}",
        "continue with a climbing start": f"continue={token(CLIMBING)}",
        "bad label selector": "labelSelector=a%3D%3D%3Db",
        "label selector with a bad key": "labelSelector=-a%3Db",
        "label selector with a bad value": "labelSelector=a%3D-b",
        "label selector with an open set": "labelSelector=a%20in%20(b",
        "bad field selector": "fieldSelector=metadata.name",
        "unknown field": "fieldSelector=data.k%3Dv",
        "a future version": "resourceVersion=99999999&timeoutSeconds=1",
        "an exact future version": "resourceVersion=99999999&resourceVersionMatch=Exact&timeoutSeconds=1",
    }
    for name, query in bad.items():
        await session.ask(f"list: {name}", "GET", f"{MAPS}?{query}")


async def watches(session: Session) -> None:
    """What a watch begins with."""
    here = version(await session.quietly("GET", MAPS))
    await session.watch("watch: version unset begins with what is there", f"{MAPS}?watch=1", 5)
    await session.watch("watch: version 0 begins with what is there", f"{MAPS}?watch=1&resourceVersion=0", 5)

    async def change() -> None:
        await session.quietly("PATCH", f"{MAPS}/c2", {"metadata": {"labels": {"parity": "1"}}}, MERGE)
        await session.quietly("PATCH", f"{MAPS}/c2", {"metadata": {"labels": {"parity": "0"}}}, MERGE)
        await session.quietly("DELETE", f"{MAPS}/c4")
        await session.quietly("POST", MAPS, config_map("c5", parity="1"))

    await session.watch("watch: from a version", f"{MAPS}?watch=1&resourceVersion={here}", 4, change)
    by_label = f"{MAPS}?watch=1&resourceVersion={here}&labelSelector=parity%3D0"
    await session.watch("watch: the same again by label", by_label, 3)
    await session.watch("watch: one object by its path", f"{MAPS}/c2?watch=1&resourceVersion={here}", 2)
    await session.watch(
        "watch: the old path", f"/api/v1/watch/namespaces/rec-reads/configmaps?resourceVersion={here}", 4
    )
    timed = f"{MAPS}?watch=1&resourceVersion={here}&timeoutSeconds=1"
    await session.watch("watch: ends after its time", timed, 4, ends=True)
    await session.watch("stream: version unset", f"{MAPS}?{STREAM}&allowWatchBookmarks=true", 6)
    await session.watch("stream: version 0", f"{MAPS}?{STREAM}&allowWatchBookmarks=true&resourceVersion=0", 6)
    exact = f"{MAPS}?{STREAM}&allowWatchBookmarks=true&resourceVersion={here}"
    await session.watch("stream: a version", exact, 6)
    by_label = f"{MAPS}?{STREAM}&allowWatchBookmarks=true&labelSelector=parity%3D0"
    await session.watch("stream: by label", by_label, 3)
    none = f"{SPACE}/pods?{STREAM}&allowWatchBookmarks=true"
    await session.watch("stream: of nothing", none, 1)
    skip = f"{MAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={here}"
    await session.watch("stream: initial events not wanted", f"{skip}&allowWatchBookmarks=true", 4)


async def bad_watches(session: Session) -> None:
    """Watches that make no sense."""
    bad = {
        "initial events without a match": "sendInitialEvents=true&allowWatchBookmarks=true",
        "initial events without bookmarks": "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "initial events with exact": "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=5",
        "a match without initial events": "resourceVersionMatch=NotOlderThan&resourceVersion=5",
        "version is no number": "resourceVersion=abc",
        "unknown field": "fieldSelector=data.k%3Dv",
        "continue": f"continue={token('{}')}",
        "limit": "limit=1",
    }
    for name, query in bad.items():
        await session.watch(f"watch: {name}", f"{MAPS}?watch=1&timeoutSeconds=1&{query}", 99, ends=True)
    future = f"{MAPS}?watch=1&resourceVersion=99999999&timeoutSeconds=1"
    await session.watch("watch: a future version", future, 99, ends=True)
    future = f"{MAPS}?{STREAM}&allowWatchBookmarks=true&resourceVersion=99999999&timeoutSeconds=1"
    await session.watch("stream: a future version", future, 99, ends=True)


async def gets(session: Session) -> None:
    """Single objects and their versions."""
    here = version(await session.quietly("GET", MAPS))
    for name, query in {
        "version 0": "resourceVersion=0",
        "a version": f"resourceVersion={here}",
        "a future version": "resourceVersion=99999999",
        "a future version, in no time": "resourceVersion=99999999&timeout=1s",
        "version is no number": "resourceVersion=abc",
        "a match": "resourceVersionMatch=Exact",
        "a time-out that is no time": "timeout=abc",
    }.items():
        await session.ask(f"get: {name}", "GET", f"{MAPS}/c2?{query}")


async def conflicts(session: Session) -> None:
    """Writes on an old version."""
    held = await session.quietly("GET", f"{MAPS}/c2")
    uid, here = held["metadata"]["uid"], held["metadata"]["resourceVersion"]
    one = f"{MAPS}/c2"
    await session.ask("write: in the version read", "PUT", one, {**config_map("c2", "w"), "metadata": held["metadata"]})
    await session.ask("write: in an old version", "PUT", one, {**config_map("c2", "x"), "metadata": held["metadata"]})
    await session.ask("write: without a version", "PUT", one, config_map("c2", "y"))
    old = {"metadata": {"resourceVersion": here}, "data": {"k": "z"}}
    await session.ask("patch: on an old version", "PATCH", one, old, content=MERGE)
    other = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "data": {"k": "z"}}
    await session.ask("patch: of another object", "PATCH", one, other, content=MERGE)
    preconditions: dict[str, Any] = {"preconditions": {"resourceVersion": here, "uid": uid}}
    await session.ask("delete: an old version", "DELETE", one, preconditions)
    await session.ask("patch: that changes nothing", "PATCH", one, {"data": {"k": "y"}}, content=MERGE)
    await session.ask("write: tried only", "PUT", f"{one}?dryRun=All", config_map("c2", "dry"))
    await session.ask("read: it was only tried", "GET", one)
    await session.ask("delete: tried only", "DELETE", f"{one}?dryRun=All")
    await session.ask("create: tried only", "POST", f"{MAPS}?dryRun=All", config_map("dry"))
    await session.ask("create: it was only tried", "GET", f"{MAPS}/dry")


async def past(session: Session) -> None:
    """What is no longer remembered."""
    page = await session.quietly("GET", f"{MAPS}?limit=1")
    here = version(page)
    await session.quietly("POST", MAPS, config_map("c6"))
    if session.compact is None:
        return
    await session.compact()
    late = await session.ask(
        "list: continue after it expired", "GET", f"{MAPS}?limit=2&continue={page['metadata']['continue']}"
    )
    again = (late.get("metadata") or {}).get("continue")
    if again:
        rest = await session.ask("list: the inconsistent continue it offers", "GET", f"{MAPS}?limit=2&continue={again}")
        further = rest["metadata"].get("continue", "")
        await session.ask("list: and the page after it", "GET", f"{MAPS}?limit=9&continue={further}")
    await session.ask("list: exact, forgotten", "GET", f"{MAPS}?resourceVersion=2&resourceVersionMatch=Exact")
    await session.ask("list: exact, still held?", "GET", f"{MAPS}?resourceVersion={here}&resourceVersionMatch=Exact")
