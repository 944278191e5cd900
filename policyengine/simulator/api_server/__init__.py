"""An embedded Kubernetes API server: real semantics in memory, over HTTP or straight into the client's transport."""

from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http_requests import Request, Response, User
from policyengine.simulator.api_server.memory import MemoryTransport

__all__ = ["ApiServer", "MemoryTransport", "Request", "Response", "User"]
