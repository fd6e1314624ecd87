"""Canary secrets put everywhere a program might log them are in no line."""

from __future__ import annotations

import io
import json
import logging
import uuid
from collections.abc import Iterator

import pytest
import structlog
from django.test import Client
from pytest_django import Settings

from klerai.logs import about_run, configure, mask
from tests.people import bearer, key_text, make_alice, sign_in

CANARY = "c4nary" + "0123456789abcdef" * 2


@pytest.fixture(params=[True, False], ids=["json", "console"])
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What reaches stderr, while it lasts, from every logger."""
    root = logging.getLogger()
    kept = root.handlers[:]
    configure({"json": request.param})
    written = io.StringIO()
    [ours] = [handler for handler in root.handlers if handler not in kept]
    assert isinstance(ours, logging.StreamHandler)
    ours.setStream(written)
    yield written
    root.handlers[:] = kept


SECRETS = {
    "key": f"kl_0a1b2c3d4e5f_{CANARY}",
    "anthropic": f"sk-ant-api03-{CANARY}",
    "openai": f"sk-proj-{CANARY}",
    "stripe": f"sk_live_{CANARY}",
    "webhook": f"whsec_{CANARY}",
    "github": f"ghp_{CANARY}",
    "bearer": f"Authorization: Bearer {CANARY}",
    "basic": f"authorization: basic {CANARY}==",
    "postgres": f"postgresql://klerai:{CANARY}@127.0.0.1:5432/klerai",
    "redis": f"redis://:{CANARY}@cache:6379/0",
    "smtp": f"smtp+tls://me%40x.org:{CANARY}@mail.example:587",
    "session": f"Cookie: theme=dark; sessionid={CANARY}; csrftoken={CANARY}",
    "host session": f"__Host-sessionid={CANARY}",
    "form": f"login=a%40b.c&password={CANARY}&remember=on",
    "repr": f"{{'password1': '{CANARY}', \"api_key\": \"{CANARY}\"}}",
    "confirm link": f"GET /accounts/confirm-email/{CANARY}:1vXyZ/ 200",
    "new e-mail link": f"GET /accounts/email/confirm/{CANARY}:1vXyZ:{CANARY}/ 200",
    "app key": f"otpauth://totp/alice%40example.org?secret={CANARY}&issuer=KlerAI",
    "reset link": f"GET /accounts/password/reset/key/1f-{CANARY}/ 302",
    "conninfo": f"host=127.0.0.1 user=klerai password={CANARY} dbname=klerai",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_masked_in_every_place_a_line_has(lines: io.StringIO, name: str) -> None:
    secret = SECRETS[name]
    log, old = structlog.get_logger("tests"), logging.getLogger("tests.old")
    log.info("happened", note=secret, nested={"deep": [secret]})
    log.info(f"happened with {secret}")
    old.warning("happened with %s", secret)
    old.warning("happened", extra={"note": secret})
    try:
        raise RuntimeError(secret)
    except RuntimeError:
        old.exception("failed")
        log.exception("failed")
    text = lines.getvalue()
    assert text.count("happened") >= 4
    assert CANARY not in text


def test_values_named_like_secrets_are_masked_whatever_they_look_like(lines: io.StringIO) -> None:
    headers = {"authorization": CANARY, "Cookie": CANARY, "x-api-key": CANARY, "X-CSRFToken": CANARY}
    structlog.get_logger("tests").info(
        "request", headers=headers, password=CANARY, client_secret=CANARY, session_key=CANARY, passphrase=[CANARY]
    )
    logging.getLogger("tests.old").info("request", extra={"api_key": CANARY, "tokens": {"input": 17}})
    assert CANARY not in lines.getvalue()


def test_ordinary_words_and_figures_stay(lines: io.StringIO) -> None:
    structlog.get_logger("tests").info("answered", tokens=1234, path="/chat/5/", url="https://example.org:8000/a", n=7)
    text = lines.getvalue()
    for kept in ("answered", "1234", "/chat/5/", "https://example.org:8000/a"):
        assert kept in text


def test_every_line_of_a_run_names_it_and_no_other_does(lines: io.StringIO) -> None:
    run_id = uuid.uuid4()
    with about_run(run_id):
        structlog.get_logger("tests").info("ours")
        logging.getLogger("some.library").warning("theirs")
    structlog.get_logger("tests").info("after")
    named = [str(run_id) in line for line in lines.getvalue().splitlines()]
    assert named == [True, True, False]


def test_uvicorn_and_django_write_the_same_way(lines: io.StringIO) -> None:
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "django.request", "django.server"):
        logging.getLogger(name).warning('127.0.0.1 - "GET %s"', f"/accounts/password/reset/key/x-{CANARY}/")
    written = lines.getvalue().splitlines()
    assert len(written) == 5
    assert CANARY not in lines.getvalue()
    if written[0].startswith("{"):
        assert {json.loads(line)["level"] for line in written} == {"warning"}


def test_requests_with_keys_and_passwords_leave_none_in_the_log(settings: Settings, lines: io.StringIO) -> None:
    settings.ROOT_URLCONF = "tests.probes"
    alice = make_alice()
    text = key_text(alice)
    browser = Client(raise_request_exception=False)
    browser.post("/accounts/login/", {"login": alice.email, "password": CANARY})
    browser.post("/accounts/signup/", {"email": "nonsense", "password1": CANARY})
    browser.get("/api/probe/broken", headers=bearer(text))
    browser.get("/api/probe/drf", headers=bearer(text + "x"))
    browser.get(f"/accounts/confirm-email/{CANARY}:x:y/")
    sign_in(alice).get("/api/nothing", headers={"X-CSRFToken": CANARY})
    written = lines.getvalue()
    assert "a bug" in written, "the failure itself is there"
    assert text not in written
    assert text.split("_", 2)[2] not in written
    assert CANARY not in written


@pytest.mark.parametrize(
    "piece", ["password=", "a://", "kl_aaaa_", "bearer ", "sessionid=", "x" * 50, "sk-", "secretsecret", "a+" * 20]
)
def test_masking_a_megabyte_of_one_piece_ends(piece: str) -> None:
    """Each shape is linear in the text: a quadratic one would not come back from this."""
    text = piece * (1_000_000 // len(piece))
    assert len(mask(text)) <= 20 * len(text)
