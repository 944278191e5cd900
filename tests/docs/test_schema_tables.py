"""The language's page has every field that a rule can see, with its type."""

import pytest

from policyengine.language.schema import OBJECTS, ROOTS
from tests.docs.schema_tables import BEGIN, END, PAGE, written

TEXT = PAGE.read_text(encoding="utf-8")
MADE = TEXT.split(BEGIN)[1].split(END)[0]


def test_the_tables_are_those_of_the_schema() -> None:
    assert written(TEXT) == TEXT, "run `python -m tests.docs.schema_tables`"


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_every_field_of_a_thing_is_on_the_page_with_its_type(name: str) -> None:
    for field in OBJECTS[name].fields.values():
        rows = [
            line for line in MADE.splitlines() if line.startswith((f"| `{field.name}` ", f"| `{name}.{field.name}` "))
        ]
        assert any(str(field.type) in row for row in rows), field.name


def test_every_root_is_on_the_page() -> None:
    assert all(f"| `{name}` | `{root.type}` |" in MADE for name, root in ROOTS.items())
