"""Kubernetes objects: one place to import every struct from, and what decodes them."""

from __future__ import annotations

from policyengine.cluster.decoding import *
from policyengine.cluster.metadata import *
from policyengine.cluster.node_objects import *
from policyengine.cluster.pod_objects import *
from policyengine.cluster.resource_objects import *
from policyengine.cluster.storage_objects import *
from policyengine.cluster.volume_objects import *
from policyengine.cluster.workload_objects import *
