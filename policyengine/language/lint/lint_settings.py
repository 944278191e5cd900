"""What a project settles for lint: severities by code, codes to ignore, the budget of a cycle. Data in, no files.

The table, in TOML: `ignore = ["PE3010"]`, `budget = "5ms"`, and `[severity]` with `PE3034 = "warning"`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from msgspec import Struct, field

from policyengine.language.diagnostics import Severity
from policyengine.suggestion import closest

DEFAULT_BUDGET = 5.0
"""Milliseconds of a decision that a policy's rules may take at 5,000 nodes when nothing is kept from before."""
_KEYS = ("budget", "ignore", "severity")
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s)")
_MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class SettingsError(ValueError):
    """Settings that make no sense: one sentence that says what and where."""


class Settings(Struct, frozen=True):
    """What holds for one file. `budget`: milliseconds."""

    severities: Mapping[str, Severity] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    budget: float = DEFAULT_BUDGET

    def severity(self, code: str, default: Severity) -> Severity | None:
        """The severity of a code; None where it is ignored."""
        return None if code in self.ignored else self.severities.get(code, default)


def settings_of(table: Mapping[str, object], where: str, known: Collection[str]) -> Settings:
    """The settings of a table.

    Arguments:
        where: what to call the table in messages: `` `pyproject.toml`, [tool.policyengine.lint] ``.
        known: the codes whose severity may be settled.

    Raises:
        SettingsError: an unknown key or code, or a value of the wrong form.
    """
    for key in table:
        if key not in _KEYS:
            raise SettingsError(f"{where}: `{key}` is no setting{_hint(key, _KEYS)}")
    ignored = table.get("ignore", [])
    if not isinstance(ignored, list) or not all(isinstance(code, str) for code in ignored):
        raise SettingsError(f'{where}: `ignore` is a list of codes, such as `["PE3010"]`')
    severities = table.get("severity", {})
    if not isinstance(severities, Mapping):
        raise SettingsError(f'{where}: `severity` is a table from codes to severities, such as `PE3010 = "error"`')
    for code in (*ignored, *severities):
        _check_code(code, where, known)
    levels = {code: _severity(code, level, where) for code, level in severities.items()}
    return Settings(levels, frozenset(ignored), _budget(table.get("budget"), where))


def _check_code(code: str, where: str, known: Collection[str]) -> None:
    if code in known:
        return
    if re.fullmatch(r"PE[012]\d{3}", code):
        raise SettingsError(f"{where}: `{code}` is an error, it keeps a policy from loading whatever is settled here")
    raise SettingsError(f"{where}: no rule has the code `{code}`{_hint(code, known)}")


def _severity(code: str, level: object, where: str) -> Severity:
    try:
        return Severity(level)
    except ValueError:
        raise SettingsError(f"{where}: the severity of `{code}` is `error`, `warning` or `info`") from None


def _budget(value: object, where: str) -> float:
    if value is None:
        return DEFAULT_BUDGET
    found = _BUDGET.fullmatch(value) if isinstance(value, str) else None
    if found is None or not float(found[1]):
        raise SettingsError(f'{where}: `budget` is a time, such as `"5ms"`')
    return float(found[1]) * _MILLISECONDS[found[2]]


def _hint(word: str, known: Collection[str]) -> str:
    close = closest(word, known)
    return f"; did you mean `{close}`?" if close else f"; there are {', '.join(sorted(known)[:8])}"
