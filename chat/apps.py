from django.apps import AppConfig

from chat.vault import Vault


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        from chat import stopping  # noqa: F401  listens; models exist only now

        self.vault = Vault()
