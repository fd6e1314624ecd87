"""Somebody with a bit of everything, and what of them is still to be found."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialToken
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.db import models
from django.test import Client
from django.utils import timezone

from billing import credits
from billing.models import LocalObject, Order, Payment, Price, StripeCustomer, StripeEvent
from chat.models import Confirmation, Conversation, GitHubToken, Item, Run, RunEvent
from klerai.accounts.exports import ask_for_export
from klerai.accounts.keys import create_key
from klerai.accounts.models import EmailChange, ExportPiece, Person
from klerai.models import OutgoingMail
from retrieval import web_results
from retrieval.ingestion.queueing import queue
from retrieval.models import CachedVector, Document
from tests.documents import taken_in
from tests.people import bearer, new_email

SECRET = "lapis lazuli harbour"


@dataclass(frozen=True, slots=True)
class Belongings:
    """`live` holds credits; `document` was read, with its vectors."""

    conversation: Conversation
    run: Run
    live: Run
    document: Document
    key_text: str


def make_belongings(person: Person) -> Belongings:
    """A row in every table that can say something of a person."""
    conversation = Conversation.objects.create(person=person, mode="assistant", title="=The harbour")
    run = _run(person, conversation, number=1, state=Run.State.COMPLETED, ended_at=timezone.now())
    Conversation.objects.filter(pk=conversation.pk).update(tip=run)
    for position, (kind, ref) in enumerate((("query", "q1"), ("tool", "q1-t1"), ("response", "q1-r"))):
        Item.objects.create(
            conversation=conversation,
            run=run,
            ref=ref,
            kind=kind,
            tool="rag_search" if kind == "tool" else "",
            content=f"{SECRET} {kind}, in full",
            summary=f"{kind} in short",
            position=position,
        )
    RunEvent.objects.create(run=run, seq=1, type="content_chunk", data={"text": SECRET})
    live = _run(person, Conversation.objects.create(person=person, mode="quick"), number=1)
    credits.hold(person, run_id=live.pk, amount=5)
    Confirmation.objects.create(
        run=live, ref="q1-t1", token_digest="t", arguments_digest="a", expires_at=timezone.now()
    )
    document = taken_in(person, f"harbour-{person.pk}.md", f"# Harbour\n\n{SECRET} of {person.pk}.\n")
    queue(document.pk)
    found = web_results.WebAnswer(SECRET, (web_results.Page("A page", "https://example.org/", "…"),))
    ref = web_results.keep(person.pk, SECRET, found, conversation_id=conversation.pk, question_ref="q1")
    words = ("harbour blue", "lapis stone", "AAPL stock price")
    web_results.index(person.pk, words, result_ref=ref, conversation_id=conversation.pk, question_ref="q1")
    GitHubToken.objects.create(person=person, cipher="…", ending="wxyz")
    EmailChange.objects.create(person=person, email=new_email("next"), asked_at=timezone.now())
    through = SocialAccount.objects.create(user=person, provider="oidc", uid=person.pk.hex, extra_data={"name": "Al"})
    SocialToken.objects.create(account=through, token=SECRET)
    Authenticator.objects.create(user=person, type=Authenticator.Type.RECOVERY_CODES, data={})
    UserSession.objects.create(user=person, ip="203.0.113.9", session_key=uuid.uuid4().hex, user_agent="Firefox/1")
    OutgoingMail.objects.create(message={"to": [person.email], "subject": "Hello", "body": SECRET})
    _buy(person)
    export = ask_for_export(person)
    ExportPiece.objects.create(export=export, position=0, data=b"half a file")
    key = create_key(person, "notebook")[1]
    assert Client().get("/api/modes", headers=bearer(key)).status_code == 200
    return Belongings(conversation, run, live, document, key)


def traces_of(person_id: uuid.UUID, email: str, names: set[str]) -> Iterator[tuple[str, str]]:
    """Every row of every model that says `names`, the person's id or e-mail: its model, and the field that does."""
    wanted = {str(person_id), person_id.hex, email, *names}
    for model in apps.get_models():
        if not model._meta.managed and not model._meta.app_label.startswith("procrastinate"):
            continue
        for row in model._default_manager.all().values():
            for field, value in row.items():
                if any(word in _said(value) for word in wanted):
                    yield model._meta.label, field


def models_with_a_path_to_a_person() -> set[type[models.Model]]:
    """Those whose rows belong to somebody, directly or by what they belong to."""
    found: set[type[models.Model]] = {Person}
    while True:
        more = {
            model
            for model in apps.get_models(include_auto_created=True)
            for field in model._meta.get_fields()
            if isinstance(field, models.ForeignKey | models.OneToOneField) and field.related_model in found
        }
        if more <= found:
            return found
        found |= more


def rows_of(model: type[models.Model], people: set[Any]) -> list[Any]:
    """The rows of a model that lead to one of these people, along any path of foreign keys."""
    found: dict[Any, Any] = {}
    for path in _paths(model):
        for row in model._base_manager.filter(**{f"{path}__in": people} if path else {"pk__in": people}):
            found[row.pk] = row
    return list(found.values())


def cached_vectors() -> set[tuple[str, str]]:
    return set(CachedVector.objects.values_list("embedder", "sha256"))


def _paths(model: type[models.Model], seen: frozenset[type[models.Model]] = frozenset()) -> Iterator[str]:
    if model is Person:
        yield ""
        return
    for field in model._meta.get_fields():
        related = field.related_model
        if not isinstance(field, models.ForeignKey | models.OneToOneField) or related in seen or related is model:
            continue
        if isinstance(related, type) and issubclass(related, models.Model):
            for rest in _paths(related, seen | {model}):
                yield f"{field.name}__{rest}" if rest else field.name


def _said(value: object) -> str:
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)


def _run(person: Person, conversation: Conversation, **fields: Any) -> Run:
    state = {"state": Run.State.RUNNING, "lease_until": datetime(2099, 1, 1, tzinfo=UTC), **fields}
    return Run.objects.create(
        run_id=uuid.uuid4(),
        person=person,
        conversation=conversation,
        mode="assistant",
        asked="x" * 64,
        ceiling_credits=25,
        citations=[{"n": 1, "title": "The harbour", "url": "https://example.org/"}] if "ended_at" in fields else [],
        receipt={"credits": 5, "lines": []} if "ended_at" in fields else None,
        **state,
    )


def _buy(person: Person) -> None:
    customer = StripeCustomer.objects.create(person_id=person.pk, stripe_id=f"cus_{person.pk.hex}")
    price = Price.objects.filter(pack__isnull=False).first()
    order = Order.objects.create(
        person_id=person.pk, price=price, credits=500, state=Order.State.PAID, return_url=f"/chat/{uuid.uuid4()}/"
    )
    Payment.objects.create(
        payment_intent=f"pi_{uuid.uuid4().hex}",
        person_id=person.pk,
        order=order,
        cents=2000,
        credits_granted=500,
        paid_at=timezone.now(),
    )
    credits.grant(person, amount=500, reason="A pack")
    StripeEvent.objects.create(
        id=f"evt_{uuid.uuid4().hex}",
        type="checkout.session.completed",
        created=timezone.now(),
        livemode=False,
        object_type="checkout.session",
        customer_id=customer.stripe_id,
        state=StripeEvent.State.APPLIED,
    )
    content = {"email": person.email}
    LocalObject.objects.create(
        id=f"cs_{uuid.uuid4().hex}", kind="session", customer_id=customer.stripe_id, content=content
    )
