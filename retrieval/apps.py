from django.apps import AppConfig

from retrieval.documentation.flights import Flights


class RetrievalConfig(AppConfig):
    name = "retrieval"

    def ready(self) -> None:
        self.flights = Flights()
