"""A code by mail, for somebody without a password to confirm that it is them: six figures, for a quarter of an hour."""

from __future__ import annotations

import secrets
from datetime import timedelta

from allauth.account.adapter import get_adapter
from django.contrib.auth.hashers import check_password, make_password
from django.http import HttpRequest
from django.utils import timezone

from klerai.accounts.models import Person

LASTS = timedelta(minutes=15)
MOST_TRIES = 5
_KEY = "mail_code"


def send_code(request: HttpRequest, person: Person) -> None:
    """A new one; the one before is void."""
    code = f"{secrets.randbelow(10**6):06}"
    until = (timezone.now() + LASTS).timestamp()
    request.session[_KEY] = {"hash": make_password(code), "until": until, "tries": 0, "email": person.email}
    get_adapter().send_mail("account/email/confirm_code", person.email, {"code": code})


def is_code(request: HttpRequest, person: Person, text: str) -> bool:
    """Whether it is the code that was sent last. After the fifth wrong try there is none any more."""
    sent = request.session.get(_KEY)
    if sent is None or sent["email"] != person.email or sent["until"] < timezone.now().timestamp():
        return False
    if check_password("".join(text.split()), sent["hash"]):
        del request.session[_KEY]
        return True
    tries = sent["tries"] + 1
    if tries < MOST_TRIES:
        request.session[_KEY] = {**sent, "tries": tries}
    else:
        del request.session[_KEY]
    return False
