"""All rules, a file each that defines a rule of the file's name.

`PE30xx` what can never or always be, `31xx` scores, `32xx` the order, `33xx` gangs and permits, `34xx` other members,
`35xx` names, texts and literals, `36xx` what runs beside the rules, `37xx` cost, `38xx` tests, `39xx` the comments that
allow findings.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from policyengine.language.lint.rule import Rule


def _rules() -> list[Rule]:
    names = [module.name for module in iter_modules(__path__)]
    return [getattr(import_module(f"{__name__}.{name}"), name) for name in names]


RULES: Final[tuple[Rule, ...]] = tuple(sorted(_rules(), key=lambda rule: rule.code))
"""By code."""
