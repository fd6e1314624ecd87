"""How many requests came of late: a row for each key, and one for each person."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class RequestCount(models.Model):
    """The requests since `began_at`, of the key or the person that `subject` is.

    The table is not logged: a crash empties it, and counting begins again.
    """

    subject = models.UUIDField(primary_key=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    began_at = models.DateTimeField()
    requests = models.PositiveIntegerField()

    class Meta:
        app_label = "accounts"

    def __str__(self) -> str:
        return str(self.subject)
