"""The form that chooses rows of the ledger: by what they were, by date, by conversation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError

from billing.credits import Wanted
from chat.models import Conversation
from chat.queries import conversations_of, runs_of
from chat.views.sidebar import title_of
from klerai.accounts.models import Person

MOST_CONVERSATIONS = 100
SHOWN = Wanted(kinds=["grant", "settle", "release", "expire", "revoke"])
KINDS: dict[str, tuple[str, Wanted]] = {
    "": ("Everything", SHOWN),
    "questions": ("Questions", Wanted(kinds=["settle"])),
    "uncharged": ("Questions, not charged", Wanted(kinds=["release"])),
    "daily": ("Daily credits", Wanted(kinds=["grant", "expire"], of_a_day=True)),
    "packs": ("Packs and gifts", Wanted(kinds=["grant", "revoke"], of_a_day=False)),
    "holds": ("Everything, also what was set aside", Wanted()),
}
_NO_CONVERSATION = "There is no such conversation, or it is not yours."
_NO_DATE = {"invalid": "Write a date, such as 2026-11-20."}


class LedgerFilter(forms.Form):
    """Dates are the person's own. A conversation of somebody else is refused like one that does not exist."""

    kind = forms.ChoiceField(
        required=False,
        choices=[(name, words) for name, (words, _) in KINDS.items()],
        error_messages={"invalid_choice": "Choose one of the list."},
    )
    since = forms.DateField(required=False, error_messages=_NO_DATE)
    until = forms.DateField(required=False, error_messages=_NO_DATE)
    conversation = forms.UUIDField(required=False, error_messages={"invalid": _NO_CONVERSATION})

    def __init__(self, person: Person, asked: Mapping[str, str]) -> None:
        super().__init__({name: str(asked.get(name, "")).replace("\0", "") for name in self.base_fields})
        self._person = person
        self._theirs = conversations_of(person)

    def clean_conversation(self) -> Conversation | None:
        wanted = self.cleaned_data["conversation"]
        found = self._theirs.filter(pk=wanted).first() if wanted else None
        if wanted and found is None:
            raise ValidationError(_NO_CONVERSATION)
        return found

    @property
    def conversations(self) -> list[tuple[str, str]]:
        """What can be chosen: the one that is chosen, and the newest."""
        chosen: Conversation | None = self.cleaned_data.get("conversation") if self.is_valid() else None
        shown = [*([chosen] if chosen else []), *self._theirs[:MOST_CONVERSATIONS]]
        return list({str(each.pk): title_of(each) for each in shown}.items())

    @property
    def is_narrowed(self) -> bool:
        return any(self.data.values())

    @property
    def query(self) -> str:
        """The same choice as part of an address."""
        return urlencode({name: value for name, value in self.data.items() if value})

    def wanted(self) -> Wanted:
        """Only of a valid form."""
        chosen = self.cleaned_data
        kind = KINDS[chosen["kind"]][1]
        conversation: Conversation | None = chosen["conversation"]
        runs = runs_of(self._person).filter(conversation=conversation) if conversation else None
        return Wanted(
            kinds=kind.kinds,
            of_a_day=kind.of_a_day,
            run_ids=None if runs is None else tuple(runs.values_list("pk", flat=True)),
            since=self._start_of(chosen["since"]),
            until=self._start_of(chosen["until"], days_later=1),
        )

    def _start_of(self, day: date | None, *, days_later: int = 0) -> datetime | None:
        if day is None or day == date.max:
            return None
        return datetime.combine(day + timedelta(days=days_later), time.min, self._person.zone)
