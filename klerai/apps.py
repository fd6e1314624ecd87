from django.apps import AppConfig


class KlerAIConfig(AppConfig):
    name = "klerai"
