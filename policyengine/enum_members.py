"""Enum members that are looked up as fast as any other class attribute.

CPython 3.11 finds a member through a property written in Python, ten times as slowly as an attribute; what is asked a
few dozen times for every pod shows. Later versions store the members as attributes by themselves.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

E = TypeVar("E", bound=Enum)


def direct_members(enumeration: type[E]) -> type[E]:
    """Class decorator: store every member, aliases included, as an attribute of the class. Nothing else changes."""
    for name, member in enumeration.__members__.items():
        type.__setattr__(enumeration, name, member)
    return enumeration
