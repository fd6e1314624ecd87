"""`manage.py serve`: the website of a deployment."""

from __future__ import annotations

import argparse
import logging
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from klerai.instance import listen
from klerai.launch import DEFAULT_PORT
from klerai.serving import serve

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Serve the website. Run `manage.py worker` beside it, and `manage.py migrate` before."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--host", default="0.0.0.0", help="default 0.0.0.0")
        parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="default 8000; 0 picks a free one")

    def handle(self, *, host: str, port: int, **_: Any) -> None:
        with listen(host, port) as listener:
            serve(
                listener.socket,
                when_ready=lambda: logger.info("Serving at %s", listener.url),
                with_worker=False,
                trusted_proxies=[str(network) for network in settings.TRUSTED_PROXIES],
            )
