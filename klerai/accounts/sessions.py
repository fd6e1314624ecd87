"""Where a person is signed in: sessions are noted as pages are read, listed, and ended for every door at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from allauth.usersessions.models import UserSession
from django.contrib.auth import logout
from django.http import HttpRequest
from django.utils import timezone

from klerai.accounts.addresses import client_address
from klerai.accounts.devices import device_words
from klerai.accounts.models import Person

SEEN_NOTED_EVERY = timedelta(minutes=1)
LONGEST_USER_AGENT = 200


@dataclass(frozen=True, slots=True)
class OpenSession:
    id: int
    device: str
    address: str
    since: datetime
    last_seen: datetime
    is_this: bool


def note_session(request: HttpRequest) -> None:
    """Remember when and from where a session was last used, to the minute, so that reading costs no write."""
    key = request.session.session_key
    if not key:
        return
    noted = UserSession.objects.filter(session_key=key).first()
    if noted is None:
        if request.user.is_authenticated and client_address(request):
            UserSession.objects.create_from_request(request)
    elif noted.last_seen_at < timezone.now() - SEEN_NOTED_EVERY:
        noted.last_seen_at = timezone.now()
        noted.ip = str(client_address(request) or noted.ip)
        noted.user_agent = request.headers.get("User-Agent", "")[:LONGEST_USER_AGENT]
        noted.save(update_fields=["last_seen_at", "ip", "user_agent"])


def sessions_of(person: Person, request: HttpRequest) -> list[OpenSession]:
    """This one first, then the one seen last. Those that no longer open anything are forgotten on the way."""
    note_session(request)
    found = [_described(each, request) for each in UserSession.objects.purge_and_list(person)]
    return sorted(found, key=lambda each: (each.is_this, each.last_seen), reverse=True)


def end_session(person: Person, session_id: int, request: HttpRequest) -> bool:
    """Whether there was such a session of this person; it is refused from the next request on."""
    found = UserSession.objects.filter(user=person, pk=session_id).first()
    if found is None:
        return False
    is_this = found.session_key == request.session.session_key
    found.end()
    if is_this:
        logout(request)
    return True


def end_other_sessions(person: Person, request: HttpRequest) -> int:
    """How many there were."""
    others = UserSession.objects.filter(user=person).exclude(session_key=request.session.session_key)
    ended = list(others)
    for each in ended:
        each.end()
    return len(ended)


def _described(noted: UserSession, request: HttpRequest) -> OpenSession:
    return OpenSession(
        id=noted.pk,
        device=device_words(noted.user_agent),
        address=noted.ip,
        since=noted.created_at,
        last_seen=noted.last_seen_at,
        is_this=noted.session_key == request.session.session_key,
    )
