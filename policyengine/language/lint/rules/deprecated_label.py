"""a label that Kubernetes has replaced

The label was deprecated and is no longer set on new nodes, or will not be. `--fix` writes its successor.
"""

from __future__ import annotations

from policyengine.language.lint.labels import DEPRECATED, keys_in
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, instead, rule


@rule("PE3513", Severity.WARNING, __doc__)
def deprecated_label(subject: Subject) -> Findings:
    """Keys of labels that have a successor."""
    for key in keys_in(subject, "labels"):
        successor = DEPRECATED.get(key.text)
        if successor is not None:
            message = f"`{key.text}` is deprecated: it is `{successor}` now"
            yield Finding(message, key.span, instead(key.span, f'"{successor}"'))
