"""DynamicResources: the devices that a pod's ResourceClaims ask for (KEP-4381, resource.k8s.io/v1).

An allocated claim binds the pod to the nodes that reach its devices. For other claims the plugin searches free devices
on every node, by device classes, CEL selectors and constraints, in the slices that the node reaches. Reserve takes them
in memory; PreBind writes the decision (`claim_plan`).

Extended resources that device classes stand for become one claim more, which PreBind makes (`extended_claim`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import count
from math import inf
from typing import Any, Final

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policyengine.cluster.device_objects import ResourceClaim
from policyengine.cluster.device_slices import DeviceSlices
from policyengine.cluster.node_objects import Node
from policyengine.cluster.pending_claims import PendingClaims
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.plugin import UNCONCERNED, Reads, Scores, default_normalize
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.post_filter import PostFilterResult
from policyengine.framework.reservation import NOTHING_TO_DO, Plan
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.language.values import EvaluationError, parse_duration
from policyengine.plugins.devices.allocation import allocation_result
from policyengine.plugins.devices.binding_conditions import TIMEOUT, is_unavailable
from policyengine.plugins.devices.claim_plan import check_claims_plan, claims_plan, deallocation, removal
from policyengine.plugins.devices.claim_state import (
    CLAIM,
    CLASS,
    SLICE,
    ClaimsState,
    claim_names,
    claims_state,
    find_claims,
    is_reserved_for,
    left_over,
    names_claim,
)
from policyengine.plugins.devices.device_pools import Pools, Taken
from policyengine.plugins.devices.device_request import AllocationError
from policyengine.plugins.devices.device_search import LOOKS_A_SECOND
from policyengine.plugins.devices.extended_claim import ExtendedResources, asked_by, claim_of
from policyengine.plugins.devices.outcomes import MOST_KEPT, Devices, Verdict

_UNRESOLVABLE: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_NOTHING: Final = Refusal(_UNRESOLVABLE, ("cannot allocate all claims",))
_INVALID_POOLS: Final = Refusal(_UNRESOLVABLE, ("invalid resource pools were encountered",))
_CANNOT_FIT: Final = Refusal(_UNRESOLVABLE, ("cannot fit resource",))
_NOT_AVAILABLE: Final = 6
"""The last refusal; those before are numbered as the verdicts of a search."""
_FILTER_TIMEOUT: Final = 10 * 10**9
"""Nanoseconds (DynamicResourcesArgs)."""
NO_CLAIMS: Final = Status(Code.UNSCHEDULABLE, ("no new claims to deallocate",))
NO_HELP: Final = Status(Code.UNSCHEDULABLE, ("still not schedulable",))
DEALLOCATED: Final = Status(Code.UNSCHEDULABLE, ("deallocation of ResourceClaim completed",))
DELETED: Final = Status(Code.UNSCHEDULABLE, ("deletion of ResourceClaim completed",))
NOT_ASKED: Final = Status(Code.ERROR, ("not found",))
"""What kube-scheduler says of the state that PreFilter was to write."""


def _check_time(arguments: Mapping[str, Any], name: str, least: int, what: str) -> int | None:
    """The argument in nanoseconds, None where it is left out. ValueError if it is no duration of at least `least`."""
    text = arguments.get(name)
    try:
        if text is None or (time := parse_duration(text)) >= least:
            return None if text is None else time
    except EvaluationError as error:
        raise ValueError(f"`{name}`: {error}") from None
    raise ValueError(f"`{name}`: `{text}` must be {what}")


class DynamicResources:
    """Reads claims, slices and classes; labels and names of nodes."""

    name = "DynamicResources"
    reads = Reads.NODE
    kinds = (CLAIM, SLICE, CLASS)
    arguments: Final = schema_of(
        filterTimeout={
            "type": "string",
            "description": "how long the search on one node may take, 10s by default; 0 for ever",
        },
        bindingTimeout={
            "type": "string",
            "description": "how long devices with binding conditions may take to become ready, 600s by default",
        },
    )

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """DynamicResourcesArgs. ValueError where a time is malformed or too short."""
        given = arguments or {}
        search_for = _check_time(given, "filterTimeout", 0, "zero or positive")
        search_for = _FILTER_TIMEOUT if search_for is None else search_for
        self._most_looks = max(1, search_for * LOOKS_A_SECOND // 10**9) if search_for else inf
        bound_in = _check_time(given, "bindingTimeout", 10**9, "at least 1 second")
        self._binding_timeout = TIMEOUT if bound_in is None else bound_in / 10**9
        self._slices: DeviceSlices | None = None
        """Those of the cluster that was asked about last."""
        self._made_of: tuple[int, int] = (0, 0)
        self._devices: Devices | None = None
        self._pending: PendingClaims | None = None
        self._last: tuple[Hashable, ClaimsState | Status] | None = None
        self._unsearched: LRUCache[Hashable, bool] = LRUCache(MOST_KEPT)
        """Signatures of pods of whose nodes some were not searched, since those before took too long; more of them, by
        when they were asked about last, than the evaluator keeps columns: what it keeps is searched further."""
        self._tries = count()

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Refused while a claim is still to be made, goes, or is another pod's."""
        if not pod.shape.spec.resource_claims:
            return SUCCESS
        claims = find_claims(pod, snapshot)
        return Status(_UNRESOLVABLE, (claims,), self.name) if isinstance(claims, str) else SUCCESS

    def signature(self, pod: PodInfo) -> Hashable:
        """The pod itself, where it has claims, since they may be its own; else what extended resources it asks for."""
        claims, asked = pod.shape.spec.resource_claims, asked_by(pod.shape)
        if claims:
            return (pod.namespace, pod.name, pod.uid, claims, pod.resource_claims, asked)
        return (pod.namespace, asked) if asked else UNCONCERNED

    def situation(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """Which of the pod's claims are late: that comes with time alone. Another one each time while nodes are left to
        be searched, so that they are."""
        if self._unsearched and self._unsearched.get(self.signature(pod)):
            return next(self._tries)
        claims = find_claims(pod, snapshot) if pod.shape.spec.resource_claims else ()
        if isinstance(claims, str):
            return ()
        return tuple([is_unavailable(claim, self._binding_timeout, snapshot.now) for claim in claims])

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped without claims. Absent, deleted and foreign claims refuse the pod, and so do absent classes."""
        found = self._state(pod, snapshot)
        return (found, None) if isinstance(found, Status) else (SUCCESS, found)

    def filter(self, state: ClaimsState, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Nodes without devices for all claims, or out of reach of an allocated one, are refused."""
        nodes = snapshot.nodes
        refused = np.full(len(rows), _NOT_AVAILABLE if state.unavailable else 0, dtype=np.int16)
        for selector in state.available_on:
            refused[~selector.mask(nodes, rows)] = _NOT_AVAILABLE
        if state.allocates:
            state.devices.begin()
            on, objects = state.outcome, nodes.objects
            searched = np.array([on(objects[row]).verdict for row in rows.tolist()], dtype=np.int16)
            refused = np.where(searched, searched, refused)
            self._note(state)

        def too_long_at(rows: Rows) -> list[str]:
            return [f"node {nodes.names[row]}: timed out trying to allocate devices" for row in rows.tolist()]

        def wrong_at(rows: Rows) -> list[str]:
            return [_mistake(state, nodes.objects[row]) for row in rows.tolist()]

        errors = Refusal(Code.ERROR, render=too_long_at), Refusal(Code.ERROR, render=wrong_at)
        elsewhere = Refusal(_UNRESOLVABLE, ("resourceclaim not available on the node",))
        return Verdicts(refused, (_NOTHING, _INVALID_POOLS, *errors, _CANNOT_FIT, elsewhere))

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped unless a request has alternatives."""
        found = self._state(pod, snapshot)
        if isinstance(found, Status) or not found.has_alternatives:
            return SKIP, None
        return SUCCESS, found

    def score(self, state: ClaimsState, snapshot: Snapshot, rows: Rows) -> NDArray[np.int64]:
        """The ranks of the alternatives that the node gives, the first of a list being worth most."""
        state.devices.begin()
        objects = snapshot.nodes.objects
        return np.fromiter((state.score(objects[row]) for row in rows.tolist()), dtype=np.int64, count=len(rows))

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """100·s/max."""
        return default_normalize(scores)

    def reserve(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> Status:
        """Take the devices for the claims that are not allocated yet, and a share in those that are."""
        if self.signature(pod) is UNCONCERNED:
            return SUCCESS
        found = self._state(pod, snapshot)
        if isinstance(found, Status):
            return SUCCESS if found.is_skip else found
        node = _node(node_name, snapshot)
        try:
            given = found.given(node)
            if isinstance(given, Verdict):
                return Status(Code.ERROR, ("claim allocation not found for node",))
            allocations = {
                wanted.claim.metadata.key: (claim, allocation_result(claim, devices, node_name))
                for wanted, devices in zip(found.wanted(node), given, strict=True)
                for claim in [claim_of(pod, wanted.claim)]
            }
        except AllocationError as error:
            return Status(Code.ERROR, (str(error),))
        self._pending = snapshot.pending_claims
        allocated = {one.metadata.key: (one, None) for one in found.claims if not is_reserved_for(one, pod)}
        for claim, allocation in {**allocated, **allocations}.values():
            self._pending.add(claim, allocation, pod.uid)
        return SUCCESS

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        """Give the devices back."""
        if self._pending is not None:
            self._pending.release(pod.uid)

    def plan(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> tuple[Status, Plan]:
        """Write what Reserve took, and wait for the devices. Skipped where the claims say it already, and no device has
        binding conditions."""
        if self.signature(pod) is UNCONCERNED:
            return SKIP, NOTHING_TO_DO
        claims = find_claims(pod, snapshot)
        if isinstance(claims, str):
            return Status(Code.ERROR, (claims,)), NOTHING_TO_DO
        pending = snapshot.pending_claims.of_pod(pod.uid)
        extended = ExtendedResources(pod, snapshot)
        mappings = extended.on(_node(node_name, snapshot)).mappings if extended else ()
        plan = claims_plan(pod, node_name, claims, pending, mappings, self._binding_timeout, snapshot.now)
        return (SKIP, NOTHING_TO_DO) if plan is None else (SUCCESS, plan)

    def prepared(self, pod: PodInfo, node_name: str, plan: Plan, snapshot: Snapshot) -> Status:
        """Whether the claims are allocated and reserved for the pod, and their devices ready."""
        return check_claims_plan(pod, node_name, plan, snapshot, self._binding_timeout)

    def post_filter(
        self, pod: PodInfo, diagnosis: Diagnosis, evaluator: Evaluator, view: ClusterView
    ) -> PostFilterResult:
        """Take back the devices of a claim that binds the pod to other nodes and that nobody else uses; or have the
        special claim go that an earlier attempt left. Else no help, in kube-scheduler's words, which every
        FailedScheduling message has. Where a plugin before this one refused the pod in PreFilter for good, its own
        PreFilter has not run: that is an error, and ends PostFilter (`PostFilter`, dynamicresources.go, and
        `RunPreFilterPlugins`, framework.go, v1.36)."""
        refused = diagnosis.pre_filter
        if refused is None:
            return self._given_back(pod, diagnosis, view.snapshot())
        before = [plugin.name for plugin in evaluator.profile.filters]
        was_asked = refused.code is not _UNRESOLVABLE or refused.plugin not in before[: before.index(self.name)]
        return PostFilterResult(NO_CLAIMS if was_asked else NOT_ASKED)

    def _given_back(self, pod: PodInfo, diagnosis: Diagnosis, snapshot: Snapshot) -> PostFilterResult:
        found = self._state(pod, snapshot)
        if isinstance(found, Status):
            return PostFilterResult(NO_CLAIMS)
        rows = diagnosis.by_plugin().get(self.name)
        claim = None if rows is None else found.in_the_way(pod, snapshot.nodes, rows)
        if claim is not None:
            return PostFilterResult(DEALLOCATED, patches=(deallocation(claim),))
        left = left_over(pod, snapshot)
        if left is not None:
            return PostFilterResult(DELETED, patches=removal(left))
        return PostFilterResult(NO_HELP)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Claims, slices, classes and nodes that come or change; the pod's own claims that are made."""
        add, update = ActionType.ADD, ActionType.UPDATE
        node = add | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            on(Resource.NODE, node),
            on(Resource.RESOURCE_CLAIM, add | update, _claim_changed),
            on(Resource.POD, generated, _claims_generated),
            on(Resource.DEVICE_CLASS, add | update),
            on(Resource.RESOURCE_SLICE, add | update),
        )

    def _state(self, pod: PodInfo, snapshot: Snapshot) -> ClaimsState | Status:
        """What follows from the pod and the objects; the last one is kept, since Filter, Score and Reserve ask."""
        if snapshot.device_slices is not self._slices:
            self._slices, self._devices, self._last = snapshot.device_slices, None, None
        key = (self.signature(pod), self.situation(pod, snapshot), *(snapshot.version(kind) for kind in self.kinds))
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        state = claims_state(pod, snapshot, self._devices_now(snapshot), self._binding_timeout)
        if isinstance(state, ClaimsState):
            state.signature = key[0]
        self._last = (key, state)
        return state

    def _note(self, claims: ClaimsState) -> None:
        """Whether all nodes were searched."""
        if claims.devices.is_exhausted:
            self._unsearched[claims.signature] = True
        else:
            self._unsearched.pop(claims.signature, None)

    def _devices_now(self, snapshot: Snapshot) -> Devices:
        if self._devices is None:
            self._devices = Devices(Pools(snapshot.device_slices), Taken(), self._most_looks)
        made_of = (snapshot.version(SLICE), snapshot.version(CLASS))
        if self._made_of[0] != made_of[0]:
            self._devices.slices_changed()
        if self._made_of[1] != made_of[1]:
            self._devices.classes_changed()
        self._made_of = made_of
        self._devices.taken.follow(snapshot.objects(ResourceClaim), snapshot.pending_claims.allocations())
        return self._devices


def _mistake(claims: ClaimsState, node: Node) -> str:
    """What is wrong with a claim, a class or a slice, as the search finds it on the node."""
    try:
        claims.given(node)
    except AllocationError as error:
        return str(error)
    return ""


def _node(name: str, snapshot: Snapshot) -> Node:
    return snapshot.nodes.objects[snapshot.nodes.row_of[name]]


def _claim_changed(pod: PodInfo, old: object, new: object) -> bool:
    """A claim that lost its allocation frees devices for anybody; else only the pod's own claims matter, and of
    them only their status."""
    if not isinstance(new, ResourceClaim):
        return False
    was = old if isinstance(old, ResourceClaim) else None
    is_free = was is not None and was.status.allocation is not None and new.status.allocation is None
    concerns = names_claim(pod, new) and (was is None or was.status != new.status)
    return (is_free or concerns) and not isinstance(claim_names(pod), str)


def _claims_generated(pod: PodInfo, old: object, new: PodInfo | None) -> bool:
    return not (new is None or new.uid != pod.uid or isinstance(claim_names(new), str))
