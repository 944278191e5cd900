"""What `explain` asks about: a cluster's objects, from a file or listed at once, and the policies that serve in it.

A file is JSON, or YAML as data from outside, of one document or several.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from policyengine.commands.options import UnusableInput, cannot_read
from policyengine.commands.progress import progress
from policyengine.regular_file import read, read_stream

if TYPE_CHECKING:
    from policyengine.cluster.pod_objects import Pod
    from policyengine.diagnosis.dump import DumpedObject
    from policyengine.framework.profile import Profile
    from policyengine.kube.config.credentials import Server


@dataclass(frozen=True)
class ExplainedCluster:
    """Objects and policies."""

    where: str
    """For messages: `the cluster in …`."""
    namespace: str
    """Of names without one."""
    objects: Sequence[DumpedObject]
    profiles: Sequence[Profile]
    """One for each scheduler name, those that were named or found first; the in-tree defaults are the last, where
    nobody else serves `default-scheduler`."""
    notes: Sequence[str]
    """What is to be known of the answer: a sentence each."""

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        """By `namespace/name`."""
        return {one.object.metadata.key: one.object for one in self.objects if one.kind == "Pod"}

    @cached_property
    def waiting(self) -> Mapping[str, Pod]:
        """Those that wait."""
        from policyengine.diagnosis.forecast import waits

        return {key: pod for key, pod in self.pods.items() if waits(pod)}


def from_file(path: Path, given: Sequence[Profile] | None) -> ExplainedCluster:
    """The cluster in a file. `given`: the policies that were named; None for those in the file that serve.

    Raises:
        UnusableInput: the file cannot be read, or holds no cluster.
    """
    from policyengine.cluster.kinds import NAMESPACE
    from policyengine.cluster.objects import ObjectError
    from policyengine.diagnosis.dump import PRINTED_BY, ClusterShapeError, gaps, objects_in, read_objects
    from policyengine.plugins.registry import with_default_profile

    where = "standard input" if str(path) == "-" else f"`{path}`"
    with progress(f"reading {path}"):
        content = read_cluster(path)
        try:
            objects = read_objects(content)
            if not objects and (kinds := {kind for kind, _ in objects_in(content)}):
                named = ", ".join(sorted(kinds)[:5])
                raise UnusableInput(f"{where} has neither nodes nor pods, only {named}; print them with `{PRINTED_BY}`")
            notes: list[str] = []
            serving = _serving_in(content, notes) if given is None else given
        except (ClusterShapeError, ObjectError) as error:
            raise UnusableInput(f"{where}: {error}") from None
    profiles = with_default_profile(serving)
    notes += [*gaps(where, objects, profiles), *_unasked(where, objects, given)]
    return ExplainedCluster(where, NAMESPACE, objects, profiles, notes)


def _serving_in(content: Mapping[str, Any], notes: list[str]) -> Sequence[Profile]:
    """The policies that serve, of those in a dump."""
    from policyengine.diagnosis.dump import carries_policies

    if not carries_policies(content):
        return ()
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.kube.policies.serving import serving_in

    found = serving_in(content, installed_registry())
    notes += found.refused
    return found.profiles


def from_server(server: Server, given: Sequence[Profile] | None) -> ExplainedCluster:
    """The cluster behind an API server, listed at once. `given`: as for `from_file`.

    Raises:
        Unreachable, AccessDenied: it does not answer, or refuses us.
    """
    import asyncio

    return asyncio.run(_listed(server, given))


async def _listed(server: Server, given: Sequence[Profile] | None) -> ExplainedCluster:
    from policyengine.cluster.kinds import NAMESPACE
    from policyengine.commands.cluster_client import connected
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.diagnosis.dump import DumpedObject
    from policyengine.kube.config.access import Unreachable
    from policyengine.kube.http.client import ApiError, ConnectionFailed
    from policyengine.kube.listing import list_cluster, list_policies
    from policyengine.kube.policies.serving import serving
    from policyengine.plugins.registry import with_default_profile

    notes: list[str] = []
    with progress(f"listing the objects of {server.url}"):
        async with connected(server) as client:
            try:
                chosen = given
                if chosen is None:
                    sources, left_out = await list_policies(client)
                    found = serving(sources, installed_registry())
                    chosen = found.profiles
                    notes += [*left_out, *found.refused]
                profiles = with_default_profile(chosen)
                listed = await list_cluster(client, profiles)
            except (ApiError, ConnectionFailed) as error:
                raise Unreachable(
                    f"the API server `{server.url}` fails while its objects are listed: {error}"
                ) from None
    objects = [DumpedObject(kind, item) for kind, item in listed.objects]
    objects.sort(key=lambda one: one.kind == "Pod")  # each is told its PodGroup when it comes
    where = f"the cluster of {server.source}"
    notes += [*listed.left_out, *_unasked(where, objects, given)]
    return ExplainedCluster(where, server.namespace or NAMESPACE, objects, profiles, notes)


def _unasked(where: str, objects: Sequence[DumpedObject], given: Sequence[Profile] | None) -> list[str]:
    """Where policies were named, and no pod that waits asks for any of them: it is another cluster's, or a mistake."""
    from policyengine.diagnosis.forecast import waits

    asked = {one.object.spec.scheduler_name for one in objects if one.kind == "Pod" and waits(one.object)}
    served = {profile.scheduler_name for profile in given or ()}
    if not given or not asked or asked & served:
        return []
    return [
        f"no pod that waits in {where} asks for {_names(served)}, which --policy serves, but for {_names(asked)}: name "
        "the policy of that, or add --alone to judge the pods by this one all the same"
    ]


def _names(names: Iterable[str]) -> str:
    return " or ".join(f"`{name}`" for name in sorted(names)[:5])


# --- files -------------------------------------------------------------------------------------------------

_LARGEST: Final = 1 << 30
"""Bytes of a dump in JSON: 100,000 pods."""
_LARGEST_YAML: Final = 64 << 20
"""Bytes of one in YAML, which takes twenty times as long to read, and as much memory."""
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
"""Of characters beyond U+FFFF, which JSON writes as two escapes."""


def read_cluster(path: Path) -> Any:
    """The file's content, several documents as one List. Not everything that can be read is a cluster.

    Raises:
        UnusableInput: it cannot be read, or is neither JSON nor YAML.
    """
    try:
        raw = read_stream(sys.stdin.buffer, _LARGEST) if str(path) == "-" else read(path, _LARGEST)
    except OSError as error:
        raise cannot_read(path, error) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnusableInput(f"`{path}` is not UTF-8: byte {error.start} is `0x{raw[error.start]:02x}`") from None
    if not text.strip():
        raise UnusableInput(f"`{path}` is empty; did the command that printed it fail?")
    found = _json(path, text, raw) if text.lstrip()[0] in "{[" else _yaml(path, text)
    return found[0] if len(found) == 1 else {"kind": "List", "items": found}


def _json(path: Path, text: str, raw: bytes) -> list[Any]:
    """The values, one after another."""
    decoder, found, at = json.JSONDecoder(parse_int=_int64), [], 0
    try:
        while (at := _next(text, at)) < len(text):
            value, at = decoder.raw_decode(text, at)
            found.append(value)
        if _HALVES.search(raw):
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if not text[error.pos :].strip() or "Unterminated string" in error.msg:
            raise UnusableInput(f"`{path}` is cut off, in {where}: print it again") from None
        raise UnusableInput(f"`{path}` is not JSON: {where}: {error.msg.lower()}") from None
    except UnicodeEncodeError:
        raise UnusableInput(
            f"`{path}` has half a character: `\\ud800` to `\\udfff`, alone; write a whole one"
        ) from None
    except RecursionError:
        raise UnusableInput(f"`{path}` is nested too deeply to be a cluster") from None
    except ValueError:
        raise UnusableInput(f"`{path}` has a whole number beyond 64 bits, which no field of an object takes") from None
    return found


_SPACE = re.compile(r"[ \t\r\n]*")


def _next(text: str, at: int) -> int:
    """Where the next value begins."""
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _int64(text: str) -> int:
    number = int(text)  # raises ValueError for thousands of digits
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _yaml(path: Path, text: str) -> list[Any]:
    """The documents that hold something."""
    from policyengine.plain_yaml import PlainYamlError, documents, plain  # a tenth of a second, and most are JSON

    if len(text) > _LARGEST_YAML:
        raise UnusableInput(
            f"`{path}` has more than {_LARGEST_YAML >> 20} MiB of YAML; print it with `-o json`, which is read faster"
        )
    try:
        found = [plain(document) for document in documents(text)]
    except PlainYamlError as error:
        raise UnusableInput(f"`{path}` {error}") from None
    found = [document for document in found if document is not None]
    if not found:
        raise UnusableInput(f"`{path}` holds nothing; did the command that printed it fail?")
    return found
