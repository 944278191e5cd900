"""Addresses and ports of Services, chosen at creation as the real server's allocators do: each once, lowest first."""

from ipaddress import IPv4Address, IPv4Network
from itertools import count

from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage.store import Object, Store, child, objects

RANGE = IPv4Network("10.0.0.0/16")
FIRST_OFFSET = 10
FIRST_NODE_PORT = 30_000


def _used(store: Store) -> tuple[set[str], set[Json]]:
    specs = [child(e.object(), "spec") for e in store.collection(("", "services")).entries.values()]
    ports = {port.get("nodePort") for spec in specs for port in objects(spec.get("ports"))}
    return {str(spec.get("clusterIP")) for spec in specs}, ports


def allocate(service: Object, store: Store) -> None:
    """Give a new Service its cluster IP and node ports, unless it names them or has none."""
    spec = child(service, "spec")
    if spec.get("type") == "ExternalName":
        return
    addresses, ports = _used(store)
    address = spec.get("clusterIP")
    if not address:
        first: IPv4Address = RANGE.network_address + FIRST_OFFSET
        address = spec["clusterIP"] = next(str(first + n) for n in count() if str(first + n) not in addresses)
    spec["clusterIPs"] = [address]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        for port in objects(spec.get("ports")):
            if not port.get("nodePort"):
                port["nodePort"] = next(n for n in count(FIRST_NODE_PORT) if n not in ports)
                ports.add(port["nodePort"])
