"""Findings as LSP's diagnostics."""

from __future__ import annotations

from lsprotocol import types as lsp

from policyengine.language.diagnostics import Diagnostic, Severity
from policyengine.server.language_server.project import Document

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}


def published(finding: Diagnostic, document: Document) -> lsp.Diagnostic:
    """A finding at its place in the file, as an editor shows it."""
    help_ = f"\nhelp: {finding.fix.title}" if finding.fix is not None else ""
    return lsp.Diagnostic(
        range=document.lines.range(finding.span),
        message=finding.message + help_,
        severity=_SEVERITIES[finding.severity],
        code=finding.code or None,
        source="policyengine",
        related_information=[
            lsp.DiagnosticRelatedInformation(lsp.Location(document.uri, document.lines.range(one.span)), one.label)
            for one in finding.related
        ]
        or None,
    )
