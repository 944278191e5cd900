"""Members stored as attributes are the members they were."""

import pickle
from copy import deepcopy
from enum import Enum, Flag, IntEnum, auto

import pytest

from policyengine.enum_members import direct_members


@direct_members
class Color(Enum):
    RED = "red"
    CRIMSON = RED
    BLUE = "blue"

    @property
    def is_warm(self) -> bool:
        return self is Color.RED


@direct_members
class Size(IntEnum):
    SMALL = 1
    LARGE = 2


@direct_members
class Right(Flag):
    READ = auto()
    WRITE = auto()
    ALL = READ | WRITE


@pytest.mark.parametrize("enumeration", [Color, Size, Right])
def test_every_name_stands_for_its_member_and_is_an_attribute_of_its_own(enumeration):
    for name, member in enumeration.__members__.items():
        assert enumeration.__dict__[name] is member
        assert getattr(enumeration, name) is enumeration[name] is enumeration(member.value) is member
        assert pickle.loads(pickle.dumps(member)) is deepcopy(member) is member


def test_all_else_of_an_enumeration_stays():
    assert list(Color) == [Color.RED, Color.BLUE]
    assert Color.CRIMSON is Color.RED
    assert (Color.RED.is_warm, Color.BLUE.is_warm) == (True, False)
    assert repr(Color.BLUE) == "<Color.BLUE: 'blue'>"
    assert Size.SMALL < Size.LARGE == 2
    assert (Right.READ | Right.WRITE) is Right.ALL
    assert Right.READ in Right.ALL
    with pytest.raises(AttributeError):
        Color.RED = "green"
