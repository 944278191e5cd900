"""Input that cannot be used: one message, exit code 2. (Flags that do not go together are a `click.UsageError`.)"""

from __future__ import annotations

from pathlib import Path

import click


class UnusableInput(click.ClickException):
    """A file, a policy, a plugin or a name that cannot be used; the message says what to do."""

    exit_code = 2


def cannot_read(path: Path, error: OSError) -> UnusableInput:
    """The error for a file that the system does not let us read."""
    return UnusableInput(f"cannot read `{path}`: {_reason(error)}")


def cannot_write(path: Path, error: OSError) -> UnusableInput:
    """The error for a file that the system does not let us write."""
    return UnusableInput(f"cannot write `{path}`: {_reason(error)}")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
