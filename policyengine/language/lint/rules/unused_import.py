"""an import that nothing uses

No name of the library stands in the file, so the file does not depend on it. `--fix` removes the import.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, removal, rule


@rule("PE3502", Severity.WARNING, __doc__)
def unused_import(subject: Subject) -> Findings:
    """Imports whose name, or alias, begins no name of the file."""
    for one in subject.file.imports:
        name = (one.alias or one.name).text
        if not subject.is_named_in_file(name):
            yield Finding(f"nothing of `{name}` is used", one.span, removal(subject.line_of(one), "remove the import"))
