"""The values in the `params.yaml` of ConfigMap manifests: what their policies are loaded with in a cluster."""

from __future__ import annotations

from collections.abc import Iterable

from policyengine.commands.policy_files import PolicyText
from policyengine.language.parse import SourceError


def params_beside(texts: Iterable[PolicyText]) -> dict[str, object]:
    """The values by the params' full names.

    Raises:
        SourceError: a `params.yaml` cannot be read, or two of them give a param different values.
    """
    found: dict[str, tuple[object, str]] = {}
    for name, value, where in _given(texts):
        before, there = found.setdefault(name, (value, where))
        if before != value:
            raise SourceError(f"`{name}` has one value in `{there}` and another in `{where}`; name one of the two")
    return {name: value for name, (value, _) in found.items()}


def _given(texts: Iterable[PolicyText]) -> Iterable[tuple[str, object, str]]:
    files = {text.params.source.file: text.params for text in texts if text.params is not None}
    if not files:
        return
    # Imported here: most commands meet no manifest, and YAML takes a while to load.
    from policyengine.kube.policies.params_file import read_params
    from policyengine.plain_yaml import PlainYamlError

    for name, file in files.items():
        try:
            given = read_params(file.source.text)
        except PlainYamlError as error:
            raise SourceError(f"`{name}` {error}") from None
        for param, one in given.items():
            yield param, one.value, name
