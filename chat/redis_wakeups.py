"""“Look again”, said from process to process over Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from chat.wakeups import POLL_SECONDS

LAYER = "wakeups"


class OverRedis:
    """Several processes: the channel layer carries the word; when it is down viewers fall back to looking."""

    async def notify(self, run_keys: Sequence[UUID]) -> None:
        layer = get_channel_layer(LAYER)
        for run_key in run_keys:
            try:
                async with asyncio.timeout(0.2):
                    await layer.group_send(_group(run_key), {"type": "look.again"})
            except (RedisError, OSError):
                return

    async def wait(self, run_key: UUID) -> None:
        layer = get_channel_layer(LAYER)
        try:
            async with asyncio.timeout(POLL_SECONDS):
                mailbox = await layer.new_channel()
                await layer.group_add(_group(run_key), mailbox)
                try:
                    await layer.receive(mailbox)
                finally:
                    await layer.group_discard(_group(run_key), mailbox)
        except (RedisError, OSError):
            await asyncio.sleep(0.05)

    async def aclose(self) -> None:
        await get_channel_layer(LAYER).close_pools()


def _group(run_key: UUID) -> str:
    return f"run.{run_key.hex}"
