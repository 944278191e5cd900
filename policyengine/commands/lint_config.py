"""Where lint's settings stand: `policyengine.toml` (`[lint]`) or `pyproject.toml` (`[tool.policyengine.lint]`).

The file that is nearest counts, looked for in the folder of the policy and then upwards; in one folder
`policyengine.toml` before `pyproject.toml`. A `pyproject.toml` without the section is passed over.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from policyengine.language.lint.lint_settings import Settings, SettingsError, settings_of
from policyengine.language.lint.linter import LINT_CODES

_SECTIONS = {"policyengine.toml": ("lint",), "pyproject.toml": ("tool", "policyengine", "lint")}


def settings_for(folder: Path) -> Settings:
    """The settings that hold for the files of a folder.

    Raises:
        SettingsError: the file with the settings cannot be read, or they make no sense.
    """
    for place, section in _candidates(folder.resolve()):
        table = _section(place, section)
        if table is not None:
            return settings_of(table, f"`{place}`, [{'.'.join(section)}]", LINT_CODES)
    return Settings()


def _candidates(folder: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    for above in (folder, *folder.parents):
        for name, section in _SECTIONS.items():
            if (above / name).is_file():
                yield above / name, section


def _section(place: Path, section: tuple[str, ...]) -> Mapping[str, object] | None:
    """The table of a section; None where the file has none. A `policyengine.toml` without one settles nothing."""
    try:
        table: object = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"`{place}` cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"`{place}` is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"`{place}` is not TOML: {error}") from None
    for name in section:
        table = table.get(name) if isinstance(table, Mapping) else None
    if table is None:
        return {} if place.name == "policyengine.toml" else None
    if not isinstance(table, Mapping):
        raise SettingsError(f"`{place}`: `{'.'.join(section)}` is a table")
    return table
