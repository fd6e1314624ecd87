from django.apps import AppConfig

from chat.vault import Vault


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        self.vault = Vault()
