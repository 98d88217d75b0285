"""Commands as tests need them: somebody who carries them out, and a client in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from headway.bus.commands import Command, Reply
from headway.bus.rabbit.desk import Desk
from tests.bus.client import Client

Serve = Callable[..., Awaitable[Desk]]


class Clerk:
    """Carries everything out, and remembers it."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    async def __call__(self, command: Command) -> Reply:
        self.commands.append(command)
        return {"ok": True, "job": {"id": command.id, "n": len(self.commands)}}


async def ask(client: Client, body: dict[str, object] | bytes, **properties: object) -> Any:
    return await asyncio.to_thread(lambda: client.ask(body, **properties))
