"""What can go wrong with knowledge, worded for the person who meets it.

RetrievalError
├── NoSuchKnowledgeBase
├── NoSuchDocument
├── SharedIsReadOnly
├── NameRefused
├── FileTooLarge
├── QuotaPassed
├── UnreadableFile       (what a document's `error` says)
├── NoDocumentation
├── DocumentationUnavailable
├── KeywordsRefused
├── NoSuchWebResult
└── EmbedderFailed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the child that reads files has no Django
    from klerai.accounts.models import Person


class RetrievalError(Exception):
    """Something a caller can be told in a sentence: `str(error)`."""


class NoSuchKnowledgeBase(RetrievalError):
    """A slug that this person may not read; whether it exists elsewhere is never said."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"There is no knowledge base “{slug}”.")
        self.slug = slug


class NoSuchDocument(RetrievalError):
    """A document that this person may not read."""

    def __init__(self) -> None:
        super().__init__("There is no such document.")


class SharedIsReadOnly(RetrievalError):
    """Something of a shared knowledge base that a person may read and not write."""

    def __init__(self) -> None:
        super().__init__(
            "This knowledge base is shared: everyone may read it, and only the people who run this server change it. "
            "Nothing was changed."
        )


class NameRefused(RetrievalError):
    """A name or slug that a knowledge base cannot have: `field` says which of the two."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


class FileTooLarge(RetrievalError):
    """A file of more bytes than one may have; nothing of it is kept."""

    def __init__(self, name: str, limit_bytes: int) -> None:
        limit = f"{limit_bytes // 1_000_000} MB"
        super().__init__(f"“{name}” is larger than {limit}, the most a file may have. Split it; nothing was stored.")
        self.name = name
        self.limit_bytes = limit_bytes


class QuotaPassed(RetrievalError):
    """More than the person's plan has room for: `limit` is `documents` or `storage`. Nothing was added."""

    def __init__(self, person: Person, limit: str, *, plan: str, most: int) -> None:
        documents = f"{most:,} document{'' if most == 1 else 's'}"
        room = documents if limit == "documents" else f"{most / 1e9:,.4g} GB of files"
        super().__init__(
            f"The plan {plan} has room for {room}, and this would be more. Nothing was stored. "
            "Delete documents you no longer need, or choose a larger plan."
        )
        self.person = person
        self.limit = limit
        self.most = most


class UnreadableFile(RetrievalError):
    """A file that cannot be read, and why, in a sentence."""


class NoDocumentation(RetrievalError):
    """No library has this name, or what is wanted of it is not in its documentation; other words may find it."""


class DocumentationUnavailable(RetrievalError):
    """The documentation cannot be had for now, and no copy of it is here."""


class KeywordsRefused(RetrievalError):
    """Keywords of which some cannot be kept: what is wrong with each, and which would be good."""

    def __init__(self, problems: list[str], guidance: str) -> None:
        super().__init__(f"{' '.join(problems)} {guidance}")
        self.problems = problems


class NoSuchWebResult(RetrievalError):
    """An answer of the web that this person does not have."""

    def __init__(self, ref: str) -> None:
        super().__init__(f"There is no web result “{ref}”.")
        self.ref = ref


class EmbedderFailed(RetrievalError):
    """The embedder is not there, too slow, or gave something that are no vectors. Searching goes on by keyword."""
