"""Files of a multipart request into the database while it is parsed, so that none is copied on the way."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadhandler import FileUploadHandler
from django.db import transaction
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from klerai.accounts.models import Person
from retrieval.ingestion.accept import Accepted, begin, finish, hold_to
from retrieval.ingestion.originals import Incoming
from retrieval.knowledge import written
from retrieval.models import KnowledgeBase
from retrieval.quotas import Quota

FIELD = "file"


@transaction.atomic
def accept_files(
    person: Person | None, slug: str, request: HttpRequest, *, quota: Quota | None = None
) -> list[Accepted]:
    """Store the files of the field “file” and queue their reading: all of them or, when one is refused, none.

    Nothing may have read the body before, which CSRF checks do unless `request.POST` was set to an empty QueryDict.
    A body that cannot be parsed has no files. Raises NoSuchKnowledgeBase, SharedIsReadOnly, FileTooLarge and
    QuotaPassed.
    """
    files = _IntoPieces(written(person, slug))
    if request.content_type != "multipart/form-data":
        return []
    try:
        MultiPartParser(request.META, request, [files], request.encoding).parse()
    except MultiPartParserError:
        transaction.set_rollback(True)
        return []
    hold_to(quota, person, files.accepted)
    return files.accepted


class _IntoPieces(FileUploadHandler):
    """Django's face for who takes the pieces of files as they are parsed."""

    chunk_size = 2**20

    def __init__(self, knowledge_base: KnowledgeBase) -> None:
        super().__init__()
        self.accepted: list[Accepted] = []
        self._knowledge_base = knowledge_base
        self._incoming: Incoming | None = None

    def new_file(self, *args: Any, **options: Any) -> None:
        super().new_file(*args, **options)
        self._incoming = begin(self._knowledge_base, self.file_name or "") if self.field_name == FIELD else None

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if self._incoming is not None:
            self._incoming.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        if self._incoming is not None:
            self.accepted.append(finish(self._incoming))
            self._incoming = None
