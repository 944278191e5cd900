"""The policies worth copying are so in lint's eyes as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from policyengine.commands.lint import lint

FOLDER = Path(__file__).resolve().parents[3] / "policies"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.policy")), ids=lambda file: file.stem)
def test_a_policy_is_clean_at_the_default_level(file: Path) -> None:
    # With the libraries that it may import.
    result = CliRunner().invoke(lint, [str(file), str(FOLDER / "lib")])
    assert result.exit_code == 0, result.output
