"""a label key that no label can have

Keys of labels and annotations are a name of at most 63 letters, digits, `-`, `_` and `.`, after a DNS domain and `/`
where there is one. Any other is absent on everything, whatever is looked up.
"""

from __future__ import annotations

import re

from policyengine.language.lint.labels import keys_in
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
"""IsQualifiedName (apimachinery/pkg/util/validation)."""


@rule("PE3514", Severity.WARNING, __doc__)
def impossible_label(subject: Subject) -> Findings:
    """Literal keys that are no qualified name."""
    for field in ("labels", "annotations"):
        for key in keys_in(subject, field):
            domain, slash, name = key.text.rpartition("/")
            lower = domain.lower() if field == "annotations" else domain  # annotations' are lowered first
            if not _NAME.fullmatch(name) or (slash and not _DOMAIN.fullmatch(lower)):
                yield Finding(f"no {field.removesuffix('s')} can have the key `{key.text}`", key.span)
