"""The server: on 127.0.0.1 alone, for as long as somebody uses it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn

from attrpriv.errors import UsageError
from attrpriv.studio.app import make_app
from attrpriv.studio.folder import Folder
from attrpriv.studio.security import Keys

_LOOK = 1.0  # seconds between two looks at whether it is still used


def listening(port: int) -> socket.socket:
    """A socket on this port of 127.0.0.1; 0: any that is free."""
    # With its protocol named: asyncio sends at once on such a socket alone, and on others waits 40 ms for an acknowledgement.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    failed = False
    try:
        found.bind(("127.0.0.1", port))
    except OSError:
        failed = True
    if failed:
        found.close()
        raise UsageError(f"port: must be free on 127.0.0.1. Got {port}, which is not. Leave --port out to have one chosen.")
    return found


def serve(folder: Folder, sock: socket.socket, keys: Keys, idle: float, started: Callable[[], None]) -> None:
    """Answer until nobody has asked for `idle` seconds, or the process is told to end."""
    config = uvicorn.Config(
        make_app(folder, keys),
        http="h11",
        loop="asyncio",
        log_config=None,
        log_level="critical",  # a traceback can quote a cell
        access_log=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=5,
        limit_concurrency=64,
        h11_max_incomplete_event_size=32 * 1024,
    )
    asyncio.run(_serve(uvicorn.Server(config), sock, keys, idle, started))


async def _serve(server: uvicorn.Server, sock: socket.socket, keys: Keys, idle: float, started: Callable[[], None]) -> None:
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        started()
    while not serving.done():
        await asyncio.wait([serving], timeout=_LOOK)
        if keys.unused > idle:
            server.should_exit = True
    await serving
