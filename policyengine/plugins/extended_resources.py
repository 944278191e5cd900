"""Extended resources that device classes stand for (KEP-5004): `example.com/gpu: 2` as two devices of a class.

A class names one with `spec.extendedResourceName`, and each has one that follows from its name. Of a node whose
allocatable offers the resource, a device plugin's devices count; of any other, those of slices.
Source: extendedresourcecache, v1.36: of several classes that name one resource the newest counts, then the first by
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policyengine.cluster.device_objects import DeviceClass

IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


def backed_resources(classes: Mapping[str, DeviceClass]) -> Mapping[str, DeviceClass]:
    """Resource -> the class whose devices it stands for."""
    backed: dict[str, DeviceClass] = {}
    for name, one in classes.items():
        backed[f"{IMPLICIT}{name}"] = one
        named = one.spec.extended_resource_name
        if named and (named not in backed or _is_preferred(one, backed[named])):
            backed[named] = one
    return backed


def _is_preferred(one: DeviceClass, other: DeviceClass) -> bool:
    born, other_born = one.metadata.creation_timestamp or "", other.metadata.creation_timestamp or ""
    return born > other_born or (born == other_born and one.metadata.name < other.metadata.name)
