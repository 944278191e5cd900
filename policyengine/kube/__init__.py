"""The only asyncio client code: a scheduler on one API server.

`scheduling` puts it together, `runner` drives the core, `leader` holds the lease; the rooms `http`, `watching`,
`writing`, `policies`, `extenders` and `config` hold the parts. `server`, `simulator` and `commands` import from here.
May import: everything below it, `clock`, aiohttp, kubernetes (configuration and authentication only).
"""
