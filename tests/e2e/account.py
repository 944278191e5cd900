"""Who the scheduler is in these tests: the ServiceAccount of `deploy/base/rbac.yaml`, with its rights and no others."""

from policyengine.kube.http.client import Transport
from policyengine.simulator.api_server.access.authentication import service_account
from tests.deploy import rights

ADMIN = "admin.kubeconfig"
BY_TOKEN = "scheduler.kubeconfig"
BY_CERTIFICATE = "scheduler-certificate.kubeconfig"
REFUSED = "refused.txt"
SCHEDULER = service_account("kube-system", "policyengine")


async def set_up(admin: Transport) -> str:
    """Apply the manifests and wait until every right holds; a token of the account."""
    for obj in rights.manifests():
        await rights.apply(admin, obj)
    for grant in rights.grants():
        if grant.account == "policyengine":
            await rights.until(admin, grant, holds=True)
    return await rights.token(admin, "policyengine")
