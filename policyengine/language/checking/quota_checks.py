"""`quota`: which pods count together, and how much they may have."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import DUPLICATE_NAME, MISSING_FIELD, WRONG_AMOUNT, WRONG_WORD
from policyengine.language.checking.context import Context, replacing
from policyengine.language.checking.param_checks import constant
from policyengine.language.checking.plugin_checks import NotPlainError, key_of
from policyengine.language.checking.policy_scope import Path, PolicyScope, check_when
from policyengine.language.types import BOOL, CPU, INT, MEMORY, STORAGE, Type
from policyengine.language.values import display

_DIMENSIONS = {"cpu": CPU, "memory": MEMORY, "storage": STORAGE}
_WAITING = frozenset({"queuedAt", "attempts"})
"""What a pod has only while it waits."""
_HUGE_PAGES = "hugepages-"


def check_quota(scope: PolicyScope, member: syntax.Quota) -> ir.Quota | None:
    """A quota, None (reported) where anything in it is wrong."""
    context = Context(rule=member.name.text)
    when = _when(scope, member, context)
    guarantee = _amounts(scope, member.guarantee, "guarantee")
    limit = _amounts(scope, member.limit, "limit")
    borrow, good = None, True
    if member.borrow is not None:
        borrow = scope.typed(member.borrow, scope.known(context, when), BOOL, "`borrow`")
        good = borrow is not None and scope.reads_no_node(borrow, "`borrow`")
    if member.guarantee is None and member.limit is None:
        scope.report.error(MISSING_FIELD, "the quota has neither `guarantee` nor `limit`", member.name.span)
        return None
    if guarantee is None or limit is None or when is None or not good:
        return None
    if not _within(scope, member, dict(guarantee), dict(limit)):
        return None
    return ir.Quota(
        name=member.name.text,
        when=when,
        guarantee=guarantee,
        limit=limit if member.limit is not None else None,
        borrow=borrow,
        span=member.span,
        file=scope.file,
    )


def _when(scope: PolicyScope, member: syntax.Quota, context: Context) -> ir.Expr | None:
    when, good = check_when(scope, member.when, context)
    return when if when is not None and good and reads_running(scope, when) else None


def reads_running(scope: PolicyScope, when: ir.Expr) -> bool:
    """Whether a quota's `when` reads only what running pods have; reported otherwise."""
    return scope.reads_only(when, "a quota's `when`", _is_running, "what running pods have")


def _is_running(path: Path) -> bool:
    return path[0] == "policy" or (path[0] == "pod" and path[1:2] != () and path[1] not in _WAITING)


def _amounts(scope: PolicyScope, written: syntax.MapLiteral | None, field: str) -> ir.Amounts | None:
    """The amounts by resource, None (reported) where one is wrong; () for a field that is not given."""
    found: dict[str, int] = {}
    good = True
    for entry in written.entries if written else ():
        name = _resource(scope, entry, field)
        amount = _amount(scope, entry.value, name) if name is not None else None
        if name is None or amount is None:
            good = False
        elif name in found:
            scope.report.error(DUPLICATE_NAME, f"`{name}` is given twice in `{field}`", entry.key.span)
            good = False
        else:
            found[name] = amount
    if written is not None and not written.entries:
        scope.report.error(MISSING_FIELD, f"`{field}` names no resource, such as `{{cpu: 4}}`", written.span)
        good = False
    return tuple(found.items()) if good else None


def _resource(scope: PolicyScope, entry: syntax.MapEntry, field: str) -> str | None:
    try:
        name = key_of(entry)
    except NotPlainError as error:
        scope.report.error(WRONG_WORD, f"`{field}` takes names of resources, such as `cpu`", error.span)
        return None
    if name in _DIMENSIONS or "/" in name.strip("/") or name.startswith(_HUGE_PAGES):
        return name
    close = "storage" if name == "ephemeral-storage" else scope.report.closest(name, _DIMENSIONS)
    hint = f"; did you mean `{close}`?" if close else '; there are `cpu`, `memory`, `storage`, and `"vendor/x"`'
    fix = replacing(entry.key.span, close) if close else None
    scope.report.error(WRONG_WORD, f"no resource is called `{name}`{hint}", entry.key.span, fix)
    return None


def _amount(scope: PolicyScope, written: syntax.Expr, resource: str) -> int | None:
    value = constant(scope.checker, written, _type_of(resource))
    if value is None:
        return None
    assert isinstance(value.value, int)
    if value.value < 0:
        scope.report.error(WRONG_AMOUNT, "an amount is not negative", written.span)
        return None
    return value.value


def _type_of(resource: str) -> Type:
    if resource.startswith(_HUGE_PAGES):
        return MEMORY
    return _DIMENSIONS.get(resource, INT)


def _within(scope: PolicyScope, member: syntax.Quota, guarantee: dict[str, int], limit: dict[str, int]) -> bool:
    """Whether no guarantee is above its limit."""
    over = [name for name, amount in guarantee.items() if name in limit and amount > limit[name]]
    for name in over:
        shown = (display(amount, _type_of(name)) for amount in (guarantee[name], limit[name]))
        message = "the guarantee of `{}`, {}, is above its limit, {}".format(name, *shown)
        assert member.guarantee is not None
        place = next(entry for entry in member.guarantee.entries if key_of(entry) == name)
        scope.report.error(WRONG_AMOUNT, message, place.value.span)
    return not over
