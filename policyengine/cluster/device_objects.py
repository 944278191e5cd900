"""Dynamic resource allocation as the API sends it: claims, slices of devices, device classes.

Source: the API reference of resource.k8s.io/v1 (KEP-4381, and KEP-4816, 5004, 5007, 5055, 5075 for what came later).
Values that only pass through the scheduler (driver parameters) stay plain JSON.
"""

from __future__ import annotations

import msgspec

from policyengine.cluster.node_objects import NodeSelector, Taint
from policyengine.cluster.objects import Int64, ObjectMeta, Wire
from policyengine.cluster.pod_objects import Toleration

Amount = str | Int64 | float
"""A quantity as written."""
Json = dict[str, object]


class CELDeviceSelector(Wire, frozen=True):
    """A CEL expression over `device` that must be true."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    """One selector; without `cel` it is of a kind not known here."""

    cel: CELDeviceSelector | None = None


class CapacityRequirements(Wire, frozen=True):
    """How much of each capacity is asked for."""

    requests: dict[str, Amount] = msgspec.field(default_factory=dict)


class DeviceSubRequest(Wire, frozen=True):
    """Devices of one class: one of the alternatives of a request. `allocation_mode`: ExactCount or All."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: Int64 = 1
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements = CapacityRequirements()


class ExactDeviceRequest(DeviceSubRequest, frozen=True):
    """The only alternative of a request, which has no name."""

    admin_access: bool = False


class DeviceRequest(Wire, frozen=True):
    """`exactly`, or the first of `first_available` that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True):
    """All devices of the requests (none named: of the claim) share an attribute's value, or no two do."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceConfiguration(Wire, frozen=True):
    """Parameters for a driver, passed through; for all requests where none is named. In an allocation they came with
    the class (`FromClass`) or the claim (`FromClaim`)."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: Json | None = None


class DeviceClaim(Wire, frozen=True):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Wire, frozen=True):
    """The devices asked for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Wire, frozen=True):
    """One device given to one request (`request`, or `request/subrequest`)."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Amount] = msgspec.field(default_factory=dict)
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class DeviceAllocationResult(Wire, frozen=True):
    """The devices given, and their parameters."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class AllocationResult(Wire, frozen=True):
    """What was given, and from which nodes it can be used; without a selector from all."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Wire, frozen=True):
    """Who may use the claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Wire, frozen=True):
    """A condition of an allocated device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Wire, frozen=True):
    """What a driver says of a device that the claim was given."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(Wire, frozen=True):
    """What became of the claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Wire, frozen=True):
    """Devices that pods ask for and share."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class DeviceAttribute(Wire, frozen=True):
    """Exactly one of the values is set."""

    int_value: Int64 | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")


class CapacityRange(Wire, frozen=True):
    """Amounts that may be consumed: from `min` in steps of `step` to `max`."""

    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityRequestPolicy(Wire, frozen=True):
    """How a request for a part of a capacity is rounded, and what it may be."""

    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Wire, frozen=True):
    """An amount that a device has."""

    value: Amount = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(Wire, frozen=True):
    """An amount."""

    value: Amount = 0


class CounterSet(Wire, frozen=True):
    """Amounts that the devices of a pool draw on together."""

    name: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class DeviceCounterConsumption(Wire, frozen=True):
    """What a device draws from a counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class Device(Wire, frozen=True):
    """A device. Names in `attributes` and `capacity` without a domain are the driver's own."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Wire, frozen=True):
    """The pool a slice belongs to; only slices of the newest generation count."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Wire, frozen=True):
    """Devices of one driver, and from which nodes they are reached."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool = False
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Wire, frozen=True):
    """A part of a driver's pool of devices."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(Wire, frozen=True):
    """Which devices are of the class."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Wire, frozen=True):
    """A class of devices."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()
