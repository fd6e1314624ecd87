"""`manage.py up`: everything in one process, until Ctrl-C."""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from klerai.accounts.demo import DemoLogins, ensure_demo_accounts
from klerai.database_address import check_address
from klerai.instance import Listener, listen, only_instance
from klerai.launch import add_up_arguments, embedded_server, running
from klerai.schema import bring_up_to_date
from klerai.serving import serve
from retrieval.ingestion.guide import load_guide


class Command(BaseCommand):
    help = "Start KlerAI: database, website and worker. Ctrl-C stops everything that was started here."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_up_arguments(parser)

    def handle(self, *, host: str, port: int, no_demo: bool, **_: Any) -> None:
        with ExitStack() as held:
            address_file = held.enter_context(only_instance(settings.DATA_DIR))
            listener = held.enter_context(listen(host, port))
            address_file.write_text(listener.url)
            if settings.LOCAL_MODE and not os.environ.get("KLERAI_BASE_URL"):
                settings.BASE_URL = listener.url  # the port is known only now
            server = embedded_server(os.environ)
            if server is not None:
                held.enter_context(running(server))
            check_address(os.environ["DATABASE_URL"])
            bring_up_to_date(server)
            if not no_demo:
                load_guide()
            logins = ensure_demo_accounts(settings.DEMO_PASSWORD) if settings.LOCAL_MODE and not no_demo else None
            serve(
                listener.socket,
                when_ready=lambda: self._greet(listener, logins),
                with_worker=True,
                trusted_proxies=[str(network) for network in settings.TRUSTED_PROXIES],
            )

    def _greet(self, listener: Listener, logins: DemoLogins | None) -> None:
        self.stdout.write(f"KlerAI is ready: {listener.url}")
        if logins is not None:
            self.stdout.write(f"Sign in as {logins.demo_email} or {logins.admin_email}, password {logins.password}")
        self.stdout.flush()
