"""a label that nearly is a well-known one

`topology.kubernetes.io/zones` is no label that anything sets: on every node it is absent, and the rule decides by its
default. The message names the label that was probably meant.
"""

from __future__ import annotations

from policyengine.language.lint.labels import DEPRECATED, WELL_KNOWN, keys_in
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Severity, Subject, rule
from policyengine.language.suggestion import closest

_OURS = (".kubernetes.io", ".k8s.io")


@rule("PE3512", Severity.WARNING, __doc__)
def misspelt_label(subject: Subject) -> Findings:
    """Keys near to a well-known one."""
    for key in keys_in(subject, "labels"):
        if key.text in WELL_KNOWN or key.text in DEPRECATED:
            continue
        meant = _meant(key.text)
        if meant is not None:
            fix = Fix(f"write `{meant}`", (Edit(key.span, f'"{meant}"'),))
            yield Finding(f"nothing sets the label `{key.text}`; did you mean `{meant}`?", key.span, fix)


def _meant(text: str) -> str | None:
    domain, _, name = text.rpartition("/")
    known = [label for label in WELL_KNOWN if "/" in label]
    close = closest(text, known) if domain else None
    if close is None:
        return None
    near, _, named = close.rpartition("/")
    # Of a third party's domain only the domain tells: `topology.example.com/zone` is theirs.
    ours = f".{domain}".endswith(_OURS) or closest(domain, [near]) == near
    return close if ours and (near == domain or named == name) else None
