"""The only asyncio client code: list/watch, bind, events, leases, ConfigMaps.

May import: everything below it, `clock`, aiohttp, kubernetes (configuration and authentication only).
"""
