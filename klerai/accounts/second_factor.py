"""The second factor: who has one, and whether this session was opened with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.account.authentication import get_authentication_records
from allauth.mfa import app_settings
from allauth.mfa.models import Authenticator
from django.http import HttpRequest

from klerai.accounts.models import Person


@dataclass(frozen=True, slots=True)
class SecondFactor:
    since: datetime
    codes_left: int


def second_factor_of(person: Person) -> SecondFactor | None:
    """None when a password is enough to sign in."""
    app = _authenticator(person, Authenticator.Type.TOTP)
    if app is None:
        return None
    codes = _authenticator(person, Authenticator.Type.RECOVERY_CODES)
    used = codes.data["used_mask"].bit_count() if codes else app_settings.RECOVERY_CODE_COUNT
    return SecondFactor(app.created_at, app_settings.RECOVERY_CODE_COUNT - used)


def has_second_factor(person: Person) -> bool:
    return _authenticator(person, Authenticator.Type.TOTP) is not None


def has_given_code(request: HttpRequest) -> bool:
    """Whether a code of the app the person has now was given in this very session.

    Having one is not enough, nor is one that another session gave, nor a recovery code: whoever
    signs in with such a code has lost the app and makes a new one first.
    """
    person = request.user
    app = _authenticator(person, Authenticator.Type.TOTP) if isinstance(person, Person) else None
    if app is None:
        return False
    records = get_authentication_records(request, person)
    return any((record["method"], record.get("id")) == ("mfa", app.pk) for record in records)


def remove_second_factor(person: Person) -> bool:
    """Let the password alone sign in again, and tell the person by mail; False when there was nothing to remove.

    For an operator whom somebody locked out has convinced: it asks for no code.
    """
    removed, _ = Authenticator.objects.filter(user=person).delete()
    if removed:
        get_account_adapter().send_notification_mail("mfa/email/totp_deactivated", person)
    return bool(removed)


def _authenticator(person: Person, kind: Authenticator.Type) -> Authenticator | None:
    return Authenticator.objects.filter(user=person, type=kind).first()
