"""All rules, a file for each subject. A rule is a function: its docstring is the page, its body finds.

`PE30xx` what can never or always be, `31xx` scores, `32xx` the order, `33xx` gangs and permits, `34xx` other members,
`35xx` names, texts and literals, `36xx` what runs beside the rules, `37xx` cost, `38xx` tests, `39xx` the comments that
allow findings.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from policyengine.language.lint.rule import Rule

_FILES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
RULES: Final[tuple[Rule, ...]] = tuple(
    sorted((one for file in _FILES for one in vars(file).values() if isinstance(one, Rule)), key=lambda rule: rule.code)
)
"""By code."""
