"""What every object's metadata must be."""

import re
from typing import cast

from policyengine.simulator.api_server import field_errors as errors
from policyengine.simulator.api_server.statuses import Cause
from policyengine.simulator.api_server.storage import Object, metadata, texts

STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
MAX_ANNOTATIONS = 256 * 1024
LABEL_NAMED = frozenset({"Namespace", "LimitRange", "Service"})
PATH_NAMED = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})


def name_rule(kind: str) -> errors.NameRule:
    """How objects of a kind may be called."""
    if kind in LABEL_NAMED:
        return errors.dns_label
    return errors.path_segment if kind in PATH_NAMED else errors.subdomain


def validate_metadata(obj: Object, kind: str, namespaced: bool) -> list[Cause]:
    """A new or changed object's metadata."""
    meta = metadata(obj)
    rule, found = name_rule(kind), list[Cause]()
    base, name = str(meta.get("generateName") or ""), str(meta.get("name") or "")
    if base:
        # A generated name continues, so a dash may end the base; a dot would leave an empty part.
        found += [errors.invalid("metadata.generateName", base, why) for why in rule(re.sub(r"-$", "a", base))]
    if not name:
        found.append(errors.required("metadata.name", "name or generateName is required"))
    elif kind != "Event" or not base or not found:
        found += [errors.invalid("metadata.name", name, why) for why in rule(name)]
    if namespaced and not meta.get("namespace"):
        found.append(errors.required("metadata.namespace"))
    found += errors.validate_labels(meta.get("labels"), "metadata.labels")
    annotations = meta.get("annotations")
    held = cast("dict[str, str]", annotations) if isinstance(annotations, dict) else {}
    for key in held:
        found += [errors.invalid("metadata.annotations", key, why) for why in errors.qualified_name(key.lower())]
    if sum(len(k) + len(v) for k, v in held.items()) > MAX_ANNOTATIONS:
        found.append(errors.too_long("metadata.annotations", MAX_ANNOTATIONS))
    for at, text in enumerate(texts(meta.get("finalizers"))):
        found += [errors.invalid("metadata.finalizers", text, why) for why in errors.qualified_name(text)]
        if "/" not in text and text not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(errors.invalid(f"metadata.finalizers[{at}]", text, why))
    return found


def validate_metadata_update(new: Object, old: Object) -> list[Cause]:
    """What an update may not touch, and finalizers that come too late."""
    known = texts(metadata(old).get("finalizers"))
    added = [name for name in texts(metadata(new).get("finalizers")) if name not in known]
    if not metadata(old).get("deletionTimestamp") or not added:
        return []
    names = ", ".join(f'"{name}"' for name in added)
    why = "no new finalizers can be added if the object is being deleted, found new finalizers "
    return [errors.forbidden("metadata.finalizers", f"{why}[]string{{{names}}}")]
