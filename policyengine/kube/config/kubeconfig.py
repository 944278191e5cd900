"""What kubeconfig files say: merged, and of one context the cluster and the user.

Source: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/. The first file to name a
cluster, a user, a context or the current context has the last word about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ConfigError(Exception):
    """A kubeconfig or certificate cannot be used; one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Section:
    """A cluster, a user or a context, as one of the files describes it."""

    fields: Mapping[str, Any]
    folder: Path
    """What its relative paths start from: the folder of its file."""

    def path(self, field: str) -> str:
        """The file that a field names."""
        return str(self.folder / str(self.fields[field]))


@dataclass(frozen=True, slots=True)
class Chosen:
    """A context and what it names; a user without fields where it names none."""

    where: str
    """The files, for messages."""
    context: str
    cluster: Section
    user: Section


def choose(paths: Sequence[str], context: str | None = None) -> Chosen:
    """The context of that name, or the current one, of files laid over each other. Raises `ConfigError`."""
    where = f"kubeconfig `{':'.join(paths)}`"
    current, sections = _merged(paths, where)
    contexts, clusters, users = sections["context"], sections["cluster"], sections["user"]
    name = context or current
    if not name:
        names = ", ".join(contexts)
        hint = f"choose one with `kubectl config use-context`: {names}" if names else "it defines no context"
        raise ConfigError(f"{where} has no current context; {hint}")
    if name not in contexts:
        raise ConfigError(f"{where} has no context `{name}`; it has {', '.join(contexts) or 'none'}")
    named = contexts[name]
    cluster, user = str(named.fields.get("cluster")), named.fields.get("user")
    if cluster not in clusters:
        raise ConfigError(f"{where}: context `{name}` names cluster `{cluster}`, which it does not describe")
    if not clusters[cluster].fields.get("server"):
        raise ConfigError(f"{where}: cluster `{cluster}` has no `server`")
    if user and str(user) not in users:
        raise ConfigError(f"{where}: context `{name}` names user `{user}`, which it does not describe")
    nobody = Section({}, named.folder)
    return Chosen(where, name, clusters[cluster], users[str(user)] if user else nobody)


def _merged(paths: Sequence[str], where: str) -> tuple[str, dict[str, dict[str, Section]]]:
    """The current context's name, and sections by name for each of `cluster`, `user`, `context`."""
    current = ""
    found: dict[str, dict[str, Section]] = {"cluster": {}, "user": {}, "context": {}}
    for path in paths:
        content = _content(Path(path).expanduser(), where)
        current = current or str(content.get("current-context") or "")
        folder = Path(path).expanduser().absolute().parent
        for kind, sections in found.items():
            for name, fields in _named(content.get(f"{kind}s") or (), kind, where).items():
                sections.setdefault(name, Section(fields, folder))
    return current, found


def _content(path: Path, where: str) -> Mapping[str, Any]:
    import yaml

    # libyaml's, where it is there: a file of many clusters takes a second to read without.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content = yaml.load(path.read_bytes(), loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not a kubeconfig: {first_line(error)}") from None
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {first_line(error)}") from None
    if content is not None and not isinstance(content, Mapping):
        raise ConfigError(f"{where} is not a kubeconfig")
    return content or {}


def _named(entries: Any, kind: str, where: str) -> dict[str, Mapping[str, Any]]:
    """`[{name, KIND: {…}}]` as a mapping; of two entries of a name the first."""
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ConfigError(f"{where} is not a kubeconfig: its `{kind}s` are no list")
    found: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        fields = entry.get(kind) or {} if isinstance(entry, Mapping) and "name" in entry else None
        if not isinstance(fields, Mapping):
            raise ConfigError(f"{where} is not a kubeconfig: an entry of its `{kind}s` has no `name`, or no `{kind}`")
        found.setdefault(str(entry["name"]), fields)
    return found


def first_line(error: BaseException) -> str:
    """An error of somebody else's in one line."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
