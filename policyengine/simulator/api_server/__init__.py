"""An embedded Kubernetes API server: real semantics in memory, over HTTP or straight into the client's transport."""

from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.api_server.requests import Request, Response, User

__all__ = ["ApiServer", "MemoryTransport", "Request", "Response", "User"]
