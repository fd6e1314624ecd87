"""People's own GitHub tokens: kept in cipher, read for their own session alone, and removed for good."""

from __future__ import annotations

import re
from collections.abc import Collection
from uuid import UUID

from chat.models import GitHubToken
from klerai.accounts.models import Person
from klerai.encryption import Unreadable, decrypt, encrypt

MOST_CHARACTERS = 400
_TOKEN = re.compile(r"[!-~]{20,400}")


class NotAToken(Exception):
    """str(error) says to the person what to do."""

    def __init__(self) -> None:
        super().__init__("This is not a GitHub token. Copy it whole: it begins with github_pat_ or ghp_.")


def save_token(person: Person, text: str) -> GitHubToken:
    """In place of the one before. Raises NotAToken."""
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise NotAToken
    kept = {"cipher": encrypt(token), "ending": token[-4:]}
    return GitHubToken.objects.update_or_create(person=person, defaults=kept)[0]


def remove_token(person: Person) -> bool:
    return GitHubToken.objects.filter(person=person).delete()[0] > 0


def token_of(person_id: UUID) -> str:
    """The person's own token, or "" when there is none that can be read."""
    kept = GitHubToken.objects.filter(person_id=person_id).first()
    return "" if kept is None else _read(kept)


def is_any_token() -> bool:
    return GitHubToken.objects.exists()


def tokens_of(person_ids: Collection[UUID]) -> dict[UUID, str]:
    kept = GitHubToken.objects.filter(person_id__in=person_ids)
    return {token.person_id: _read(token) for token in kept}


def _read(kept: GitHubToken) -> str:
    try:
        return decrypt(kept.cipher)
    except Unreadable:
        return ""
