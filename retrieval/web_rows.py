"""The rows of what was found on the web: answers with the pages they went by, and the keywords that find them again."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models


class WebResult(models.Model):
    """What the web said to one person, and nobody else may read.

    `ref` is the ID a model and the person know it by. `query` is what was searched for, in `question_ref` of a
    conversation. `[n]` in `text` is the n-th of `citations`: `{title, url, snippet, date}`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    ref = models.CharField(max_length=16)
    conversation_id = models.UUIDField()
    question_ref = models.CharField(max_length=24)
    query = models.TextField()
    text = models.TextField()
    citations: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField(default=list)
    model = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "retrieval"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["person", "ref"], name="web_result_ref_is_unique_for_a_person"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["conversation_id"], name="web_result_of_a_conversation"),
        ]

    def __str__(self) -> str:
        return self.ref


class Keyword(models.Model):
    """A keyword of one person's web results.

    `form` is the same however it is written; a query finds it that contains all its `terms`.
    """

    id = models.BigAutoField(primary_key=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    form = models.CharField(max_length=100)
    text = models.CharField(max_length=50)
    terms = ArrayField(models.CharField(max_length=80))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "retrieval"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["person", "form"], name="keyword_is_unique_for_a_person"),
        ]

    def __str__(self) -> str:
        return self.text


class KeywordLink(models.Model):
    """That a keyword stands for a result, and in which question it was given."""

    id = models.BigAutoField(primary_key=True)
    keyword = models.ForeignKey(Keyword, on_delete=models.CASCADE, related_name="links")
    result = models.ForeignKey(WebResult, on_delete=models.CASCADE, related_name="links")
    conversation_id = models.UUIDField()
    question_ref = models.CharField(max_length=24)

    class Meta:
        app_label = "retrieval"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["keyword", "result", "conversation_id", "question_ref"], name="keyword_link_is_unique"
            ),
        ]
