"""The metrics of the running scheduler: their table, and what is counted, timed and read for it.

`server.live` and `server.endpoints` import it. It imports `scheduler`, `kube.scheduling` and prometheus_client.
"""
