"""What stands beside every page of somebody signed in: their conversations and what is left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.urls import reverse
from django.utils import timezone

from chat.models import Conversation, Run
from chat.queries import conversations_of, runs_of
from chat.views.purse import PurseView, purse_of
from klerai.accounts.models import Person

SHOWN_CONVERSATIONS = 60
RECENT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Entry:
    id: UUID
    title: str
    url: str
    is_pinned: bool
    is_running: bool


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Sidebar:
    groups: tuple[Group, ...]
    purse: PurseView
    current: UUID | None


def sidebar_of(person: Person, *, current: UUID | None = None) -> Sidebar:
    running = runs_of(person).filter(conversation=OuterRef("pk"), state__in=Run.LIVE)
    shown = conversations_of(person).filter(is_archived=False, is_temporary=False).annotate(is_running=Exists(running))
    today = timezone.now().astimezone(person.zone).date()
    return Sidebar(
        groups=tuple(_groups(shown[:SHOWN_CONVERSATIONS], person, today=today)),
        purse=purse_of(person),
        current=current,
    )


def title_of(conversation: Conversation) -> str:
    return conversation.title or ("Temporary conversation" if conversation.is_temporary else "New conversation")


def _groups(conversations: Iterable[Conversation], person: Person, *, today: date) -> Iterable[Group]:
    sorted_in: dict[str, list[Entry]] = {"Pinned": [], "Today": [], "Last seven days": [], "Older": []}
    for conversation in conversations:
        day = conversation.updated_at.astimezone(person.zone).date()
        if conversation.is_pinned:
            title = "Pinned"
        elif day >= today:
            title = "Today"
        else:
            title = "Last seven days" if today - day <= RECENT else "Older"
        sorted_in[title].append(
            Entry(
                id=conversation.pk,
                title=title_of(conversation),
                url=reverse("conversation", args=[conversation.pk]),
                is_pinned=conversation.is_pinned,
                is_running=getattr(conversation, "is_running", False),
            )
        )
    return (Group(title, tuple(entries)) for title, entries in sorted_in.items() if entries)
