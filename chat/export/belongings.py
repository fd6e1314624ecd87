"""The parts of an export, one after the other: each is written when its turn comes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.utils.text import slugify

from billing import records
from chat.export.archive import Archive
from chat.export.conversations import conversation_as_json, conversation_as_markdown
from chat.models import Conversation, GitHubToken
from chat.movements import tell
from chat.queries import conversations_of
from klerai.accounts.devices import device_words
from klerai.accounts.models import Person
from klerai.accounts.second_factor import second_factor_of
from retrieval import belongings
from retrieval.ingestion.originals import original_pieces
from retrieval.knowledge import Document, KnowledgeBase

README = """Everything KlerAI keeps of {email}, as of {moment:%Y-%m-%d %H:%M} UTC.

profile.json            who you are here, and your settings
sessions.json           where you are signed in
api_keys.json           the names of your keys; their text is stored nowhere
conversations/          each as JSON (every branch, both memory tracks, citations, receipts) and as Markdown
knowledge/              your knowledge bases: each file as you gave it, and the text that was read out of it
web_results.json        what the web said, with the keywords that find it again
ledger.csv              every movement of your credits
purchases.json          orders, payments and subscriptions

The words of temporary conversations were never written down and are not here.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """Something to be written; what it writes is read from the database only then."""

    write: Callable[[Archive], None]


def count_parts(person: Person) -> int:
    """About how many there will be: what comes or goes meanwhile is not counted."""
    return 2 + conversations_of(person).count() + belongings.own_documents(person).count()


def parts_of(person: Person) -> Iterator[Part]:
    yield Part(partial(_account, person))
    for conversation in conversations_of(person).iterator(chunk_size=100):
        yield Part(partial(_conversation, conversation))
    for knowledge_base in belongings.own_knowledge_bases(person):
        for document in belongings.documents_in(knowledge_base):
            yield Part(partial(_document, knowledge_base, document))
    yield Part(partial(_rest, person))


def _account(person: Person, archive: Archive) -> None:
    factor = second_factor_of(person)
    token = GitHubToken.objects.filter(person=person).first()
    emails = EmailAddress.objects.filter(user=person).order_by("pk")
    through = SocialAccount.objects.filter(user=person).order_by("pk")
    archive.add_json(
        "profile.json",
        {
            "id": str(person.pk),
            "email": person.email,
            "emails": list(emails.values("email", "verified", "primary")),
            "name": person.name,
            "time_zone": person.time_zone,
            "theme": person.theme or "like the system",
            "ceiling_credits": person.ceiling_credits,
            "signs_in_through": [{"provider": each.provider, **each.extra_data} for each in through],
            "second_factor_since": factor.since if factor else None,
            "github_token_ends_in": token.ending if token else None,
            "created_at": person.created_at,
            "last_login": person.last_login,
        },
    )
    keys = person.api_keys.values("name", "prefix", "scopes", "is_active", "created_at", "last_used_at")
    archive.add_json("api_keys.json", list(keys))
    archive.add_json(
        "sessions.json",
        [
            {
                "device": device_words(each.user_agent),
                "address": each.ip,
                "since": each.created_at,
                "last_seen": each.last_seen_at,
            }
            for each in UserSession.objects.filter(user=person).order_by("created_at")
        ],
    )


def _conversation(conversation: Conversation, archive: Archive) -> None:
    title = slugify(conversation.title)[:60] or "conversation"
    name = f"conversations/{conversation.created_at:%Y-%m-%d}-{title}-{str(conversation.pk)[:8]}"
    archive.add(f"{name}.json", conversation_as_json(conversation))
    archive.add(f"{name}.md", conversation_as_markdown(conversation))


def _document(knowledge_base: KnowledgeBase, document: Document, archive: Archive) -> None:
    """What came as a row of a corpus was given as text and has no other original."""
    folder = f"knowledge/{knowledge_base.slug}"
    name = file_name(document.source.rpartition("/")[2] or document.title)
    if not document.external_id:
        archive.add(f"{folder}/originals/{name}", original_pieces(document))
    archive.add(f"{folder}/texts/{name}.txt", [belongings.text_of(document)])


def _rest(person: Person, archive: Archive) -> None:
    archive.add_json("knowledge/knowledge_bases.json", belongings.described(person))
    archive.add_json("web_results.json", belongings.web_results_of(person))
    archive.add("ledger.csv", records.ledger_csv(person, tell=tell))
    archive.add_json("purchases.json", records.purchases_of(person))


def file_name(name: str) -> str:
    """A name that every system takes and that leads out of no folder."""
    safe = re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*]', "_", name).strip(" .")
    return safe[:120] or "document"
