"""Signing in through others: only by what is set up, by a verified address, and never into somebody else's account."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from billing.credits import balance_of
from klerai.accounts.models import Person
from klerai.accounts.social_settings import SocialLogin, social_logins
from klerai.env import BadSetting, Environment
from tests.fakes.openid_server import CLIENT_ID, CLIENT_SECRET, Account, OpenIdFake, another_key
from tests.fakes.outside import Step
from tests.front_door import is_signed_in, last_mail, log_in, mail_into
from tests.people import PASSWORD, make_person, new_email, sign_in, suspend
from tests.second_factor import CODE, REAUTHENTICATE, fresh_code_of, turn_on

BEGIN, BACK = "/accounts/social/{}/", "/accounts/social/{}/callback/"
through_each = pytest.mark.parametrize("provider", ["oidc", "github"])


def an_account(email: str = "", **more: Any) -> Account:
    return Account(uuid.uuid4().hex, email or new_email(), **more)


def begin(browser: Client, provider: str = "oidc", **sent: str) -> str:
    """The address at the provider that the browser is sent to."""
    leading = browser.post(BEGIN.format(provider), sent)
    assert leading.status_code == 302, leading.content.decode()
    return str(leading["Location"])


def come_back(browser: Client, given: Mapping[str, str], provider: str = "oidc") -> Any:
    return browser.get(BACK.format(provider), given)


def pass_through(browser: Client, fake: OpenIdFake, account: Account, provider: str = "oidc", **sent: str) -> Any:
    """The whole way: begin, consent there, come back."""
    return come_back(browser, fake.consent(begin(browser, provider, **sent), account), provider)


def connect(browser: Client, fake: OpenIdFake, account: Account, provider: str = "oidc") -> str:
    """From the settings, with the password given in between; where it ends."""
    asked = pass_through(browser, fake, account, provider, process="connect")
    assert urlsplit(asked["Location"]).path == REAUTHENTICATE
    return str(browser.post(REAUTHENTICATE, {"password": PASSWORD})["Location"])


def person_at(account: Account) -> Person | None:
    return Person.objects.filter(email=account.email.lower()).first()


@through_each
def test_a_new_person_comes_in_with_a_verified_address_and_the_browsers_zone(
    openid_fake: OpenIdFake, provider: str
) -> None:
    browser, account = Client(), an_account()
    back = pass_through(browser, openid_fake, account, provider, time_zone="Europe/Berlin", next="/settings/")
    assert (back.status_code, back["Location"]) == (302, "/settings/")
    person = person_at(account)
    assert person is not None
    assert is_signed_in(browser)
    assert (person.name, person.time_zone, person.is_verified) == ("Al Ice", "Europe/Berlin", True)
    assert not person.has_usable_password()
    assert balance_of(person).daily == 50
    (kept,) = SocialAccount.objects.filter(user=person)
    assert set(kept.extra_data) <= {"login", "email", "name"}


@through_each
def test_who_came_so_once_comes_so_again_whatever_their_address_is_now(openid_fake: OpenIdFake, provider: str) -> None:
    account = an_account()
    pass_through(Client(), openid_fake, account, provider)
    person = person_at(account)
    moved = Account(account.sub, new_email(), is_verified=False)
    browser = Client()
    assert pass_through(browser, openid_fake, moved, provider)["Location"] == "/"
    assert person is not None
    assert browser.session["_auth_user_id"] == str(person.pk)
    assert person_at(moved) is None


@through_each
def test_an_address_that_is_not_verified_there_lets_nobody_in(openid_fake: OpenIdFake, provider: str) -> None:
    browser, account = Client(), an_account(is_verified=False)
    refused = pass_through(browser, openid_fake, account, provider)
    assert refused.status_code == 403
    assert "gave no e-mail address that it has verified" in refused.content.decode()
    assert person_at(account) is None
    assert not is_signed_in(browser)


@pytest.mark.parametrize("claims", [{"email_verified": "false"}, {"email_verified": None}, {"email_verified": 1}])
def test_verified_is_what_says_true(openid_fake: OpenIdFake, claims: dict[str, Any]) -> None:
    openid_fake.told = openid_fake.claims = claims
    account = an_account()
    assert pass_through(Client(), openid_fake, account).status_code == 403
    assert person_at(account) is None


@through_each
def test_an_account_with_the_same_address_is_not_entered_but_signed_in_to(
    openid_fake: OpenIdFake, provider: str
) -> None:
    alice = make_person()
    browser, account = Client(), an_account(alice.email.upper())
    refused = pass_through(browser, openid_fake, account, provider)
    assert refused.status_code == 403
    assert "Sign in to it with your password" in " ".join(refused.content.decode().split())
    assert not is_signed_in(browser)
    assert not SocialAccount.objects.filter(user=alice).exists()


@through_each
def test_after_signing_in_it_can_be_connected_and_signs_in_from_then_on(
    openid_fake: OpenIdFake, provider: str, settings: Settings, tmp_path: Path
) -> None:
    mailbox = mail_into(tmp_path, settings)
    alice, browser = make_person(), Client()
    log_in(browser, alice.email)
    account = an_account(alice.email)
    assert connect(browser, openid_fake, account, provider) == "/settings/#sign-in"
    name = {"oidc": "Harbour", "github": "GitHub"}[provider]
    page = browser.get("/settings/").content.decode()
    assert f"{name} is connected: it signs you in from now on." in page
    assert f"{name} was connected to your account" in last_mail(mailbox, alice.email)[0]
    other = Client()
    assert pass_through(other, openid_fake, account, provider)["Location"] == "/"
    assert other.session["_auth_user_id"] == str(alice.pk)


def test_an_open_session_alone_connects_nothing(openid_fake: OpenIdFake) -> None:
    alice = make_person()
    browser = sign_in(alice)
    back = pass_through(browser, openid_fake, an_account(), process="connect")
    assert urlsplit(back["Location"]).path == REAUTHENTICATE
    browser.post(REAUTHENTICATE, {"password": "not hers"})
    assert not SocialAccount.objects.filter(user=alice).exists()


def test_nobody_connects_without_being_signed_in(openid_fake: OpenIdFake) -> None:
    leading = Client().post(BEGIN.format("oidc"), {"process": "connect"})
    assert urlsplit(leading["Location"]).path == "/accounts/login/"


def test_a_stranger_cannot_connect_what_belongs_to_somebody(openid_fake: OpenIdFake) -> None:
    account = an_account()
    pass_through(Client(), openid_fake, account)
    charlie, browser = make_person("charlie"), Client()
    log_in(browser, charlie.email)
    connect(browser, openid_fake, account)
    assert "is connected to another account here" in browser.get("/settings/").content.decode()
    assert not SocialAccount.objects.filter(user=charlie).exists()


def test_the_second_factor_is_still_asked(openid_fake: OpenIdFake) -> None:
    alice, browser = make_person(), Client()
    log_in(browser, alice.email)
    account = an_account(alice.email)
    connect(browser, openid_fake, account)
    secret, _ = turn_on(browser)
    other = Client()
    back = pass_through(other, openid_fake, account)
    assert back["Location"] == CODE
    assert not is_signed_in(other)
    other.post(CODE, {"code": fresh_code_of(alice, secret)})
    assert is_signed_in(other)


def test_a_suspended_person_stays_out(openid_fake: OpenIdFake) -> None:
    account = an_account()
    pass_through(Client(), openid_fake, account)
    person = person_at(account)
    assert person is not None
    suspend(person)
    browser = Client()
    assert pass_through(browser, openid_fake, account)["Location"] == "/accounts/inactive/"
    assert not is_signed_in(browser)


@pytest.mark.parametrize("policy", ["invite", "closed"])
def test_where_sign_up_is_not_open_nobody_new_comes_in(
    openid_fake: OpenIdFake, settings: Settings, policy: str
) -> None:
    old = an_account()
    pass_through(Client(), openid_fake, old)
    settings.SIGNUP = policy
    account = an_account()
    page = pass_through(Client(), openid_fake, account).content.decode()
    assert ("Accounts are by invitation" in page) == (policy == "invite")
    assert person_at(account) is None
    assert pass_through(Client(), openid_fake, old)["Location"] == "/"


def test_of_four_tabs_that_come_in_as_the_same_new_person_there_is_one_account(openid_fake: OpenIdFake) -> None:
    account, tabs = an_account(), [Client() for _ in range(4)]
    given = [openid_fake.consent(begin(tab), account) for tab in tabs]
    with ThreadPoolExecutor(len(tabs)) as pool:
        answers = [answer.status_code for answer in pool.map(come_back, tabs, given)]
    assert set(answers) <= {302, 401, 403}
    assert 302 in answers
    assert Person.objects.filter(email=account.email).count() == 1
    assert SocialAccount.objects.filter(uid=account.sub).count() == 1


def refused(browser: Client, answer: Any) -> bool:
    assert answer.status_code == 401
    assert "Nothing was changed; begin once more." in answer.content.decode()
    return not is_signed_in(browser)


def test_an_answer_with_the_state_of_nobody_or_of_another_browser_is_refused(openid_fake: OpenIdFake) -> None:
    alice, charlie, account = Client(), Client(), an_account()
    given = openid_fake.consent(begin(charlie), account)
    begin(alice)
    assert refused(alice, come_back(alice, given))
    assert refused(alice, come_back(alice, {**given, "state": "made-up"}))
    assert refused(alice, come_back(alice, {"code": given["code"]}))
    assert come_back(charlie, given)["Location"] == "/"
    assert refused(Client(), come_back(charlie, given)), "a state is good once"


def test_a_state_of_one_provider_is_no_good_at_another(openid_fake: OpenIdFake) -> None:
    browser = Client()
    given = openid_fake.consent(begin(browser, "github"), an_account())
    assert refused(browser, come_back(browser, given, "oidc"))


BAD_CLAIMS: dict[str, dict[str, Any]] = {
    "another nonce": {"nonce": "of another sign-in"},
    "no nonce": {"nonce": None},
    "another issuer": {"iss": "https://evil.example"},
    "for another client": {"aud": "somebody-else"},
    "expired": {"exp": int(time.time()) - 600},
    "nobody": {"sub": ""},
    "another subject": {"sub": "somebody-else"},
}


@pytest.mark.parametrize("claims", BAD_CLAIMS.values(), ids=BAD_CLAIMS)
def test_a_token_that_is_not_of_this_sign_in_is_refused(openid_fake: OpenIdFake, claims: dict[str, Any]) -> None:
    openid_fake.claims = claims
    browser, account = Client(), an_account()
    assert refused(browser, pass_through(browser, openid_fake, account))
    assert person_at(account) is None


def test_a_token_that_is_signed_with_another_key_is_refused(openid_fake: OpenIdFake) -> None:
    openid_fake.signs_with = another_key()
    browser, account = Client(), an_account()
    assert refused(browser, pass_through(browser, openid_fake, account))
    assert person_at(account) is None


def test_a_profile_of_somebody_else_is_refused(openid_fake: OpenIdFake) -> None:
    openid_fake.told = {"sub": "somebody-else"}
    browser, account = Client(), an_account()
    assert refused(browser, pass_through(browser, openid_fake, account))


IN_TROUBLE = {
    "500": Step(status=500),
    "html": Step(status=503, body="<html>"),
    "no json": Step(body="not json"),
    "cut": Step(is_cut=True),
    "huge": Step(body="x" * 2_000_000),
}


@pytest.mark.parametrize("step", IN_TROUBLE.values(), ids=IN_TROUBLE)
@pytest.mark.parametrize("when", ["beginning", "coming back"])
def test_a_provider_in_trouble_is_a_page_that_says_so(openid_fake: OpenIdFake, step: Step, when: str) -> None:
    browser = Client()
    if when == "beginning":
        openid_fake.script(step)
        assert refused(browser, browser.post(BEGIN.format("oidc")))
        return
    given = openid_fake.consent(begin(browser), an_account())
    openid_fake.script(step)
    assert refused(browser, come_back(browser, given))


@pytest.mark.thorough
def test_beginning_is_limited_by_address_since_it_asks_the_provider(
    openid_fake: OpenIdFake, settings: Settings
) -> None:
    settings.ACCOUNT_RATE_LIMITS = {}
    cache.clear()
    asked = [Client().post(BEGIN.format("oidc"), REMOTE_ADDR="203.0.113.77").status_code for _ in range(32)]
    assert asked == [302] * 30 + [429] * 2
    assert Client().post(BEGIN.format("oidc"), REMOTE_ADDR="203.0.113.78").status_code == 302
    cache.clear()


def test_who_stops_there_is_told_that_nothing_happened(openid_fake: OpenIdFake) -> None:
    browser = Client()
    state = parse_qs(urlsplit(begin(browser)).query)["state"][0]
    back = come_back(browser, {"error": "access_denied", "state": state})
    assert "Nothing was changed." in browser.get(back["Location"]).content.decode()


def test_the_secret_goes_to_the_token_endpoint_only(openid_fake: OpenIdFake) -> None:
    pass_through(Client(), openid_fake, an_account())
    seen = [
        (one.path, CLIENT_SECRET in str(one.body) + str(one.params) + str(one.headers)) for one in openid_fake.requests
    ]
    assert ("/token", True) in seen
    assert {path for path, is_told in seen if is_told} == {"/token"}


def test_somebody_without_a_password_sets_one_and_can_then_disconnect(
    openid_fake: OpenIdFake, settings: Settings, tmp_path: Path
) -> None:
    mailbox = mail_into(tmp_path, settings)
    browser, account = Client(), an_account()
    pass_through(browser, openid_fake, account)
    page = browser.get("/settings/").content.decode()
    assert f"Signs you in as {account.email}." in page
    assert "Set a password" in page
    (found,) = re.findall(r"/accounts/social/\d+/disconnect/", page)
    browser.post(found)
    assert "Set a password first" in browser.get("/settings/").content.decode()
    assert browser.post("/accounts/password/set/", {"password1": PASSWORD}).status_code == 302
    assert urlsplit(browser.post(found)["Location"]).path == REAUTHENTICATE, "now there is something to prove it by"
    browser.post(REAUTHENTICATE, {"password": PASSWORD, "next": "/settings/"})
    browser.post(found)
    assert "Harbour no longer signs you in." in browser.get("/settings/").content.decode()
    assert last_mail(mailbox, account.email)[0] == "Harbour was disconnected from your account"
    assert log_in(Client(), account.email)["Location"] == "/"


def test_a_strangers_connection_is_not_there_to_disconnect(openid_fake: OpenIdFake) -> None:
    account = an_account()
    pass_through(Client(), openid_fake, account)
    kept = SocialAccount.objects.get(uid=account.sub, provider="oidc")
    charlie = Client()
    log_in(charlie, make_person("charlie").email)
    charlie.post(REAUTHENTICATE, {"password": PASSWORD, "next": "/settings/"})
    assert charlie.post(f"/accounts/social/{kept.pk}/disconnect/").status_code == 404
    assert SocialAccount.objects.filter(pk=kept.pk).exists()


def test_somebody_without_a_password_deletes_the_account_by_a_code(
    openid_fake: OpenIdFake, settings: Settings, tmp_path: Path
) -> None:
    mailbox = mail_into(tmp_path, settings)
    browser, account = Client(), an_account()
    pass_through(browser, openid_fake, account)
    browser.post("/settings/delete/code/")
    found = re.search(r"\b\d{6}\b", last_mail(mailbox, account.email)[1])
    assert found
    assert browser.post("/settings/delete/", {"code": found[0]})["Location"] == "/goodbye/"
    assert person_at(account) is None
    assert not SocialAccount.objects.filter(uid=account.sub).exists()
    pass_through(Client(), openid_fake, account)
    assert person_at(account) is not None, "they may come back"


def test_what_is_not_set_up_leaves_no_trace() -> None:
    alice = Client()
    log_in(alice, make_person().email)
    for browser, path in ((Client(), "/accounts/login/"), (Client(), "/accounts/signup/"), (alice, "/settings/")):
        page = browser.get(path).content.decode()
        assert "Continue with" not in page
        assert "/accounts/social/" not in page
    for provider in ("google", "github", "oidc", "nonsense"):
        assert Client().post(BEGIN.format(provider)).status_code == 404
        assert Client().get(BACK.format(provider)).status_code == 404


def test_the_pages_offer_what_is_set_up_by_a_form_with_its_token(openid_fake: OpenIdFake) -> None:
    for path in ("/accounts/login/?next=/billing/", "/accounts/signup/"):
        page = Client().get(path).content.decode()
        assert page.count("Continue with Harbour") == 1
        assert page.count("Continue with GitHub") == 1
    assert Client(enforce_csrf_checks=True).post(BEGIN.format("oidc")).status_code == 403
    assert Client().get(BEGIN.format("oidc")).status_code == 405


def test_the_privacy_page_names_them(openid_fake: OpenIdFake) -> None:
    page = " ".join(re.sub(r"<[^>]*>", "", Client().get("/privacy/").content.decode()).split())
    assert "Harbour (127.0.0.1) is sent that you sign in here" in page


def test_a_taken_address_that_was_never_confirmed_is_not_entered_either(openid_fake: OpenIdFake) -> None:
    """Somebody may have signed up with it before its owner did, and wait."""
    squatter = Person.objects.create_user(new_email(), PASSWORD)
    EmailAddress.objects.create(user=squatter, email=squatter.email, verified=False, primary=True)
    browser = Client()
    assert pass_through(browser, openid_fake, an_account(squatter.email)).status_code == 403
    assert not is_signed_in(browser)


SET_UP = {"GOOGLE_CLIENT_ID": "g", "GOOGLE_CLIENT_SECRET": "s", "GITHUB_CLIENT_ID": "h", "GITHUB_CLIENT_SECRET": "t"}


def test_the_environment_says_which_there_are() -> None:
    assert social_logins(Environment({})) == ()
    server = {"OIDC_SERVER_URL": "https://id.example.org/realm", "OIDC_CLIENT_ID": "o", "OIDC_CLIENT_SECRET": "u"}
    assert social_logins(Environment({**SET_UP, **server, "OIDC_NAME": "Harbour"})) == (
        SocialLogin("google", "Google", "openid_connect", "https://accounts.google.com", "g", "s"),
        SocialLogin("github", "GitHub", "github", "https://github.com", "h", "t"),
        SocialLogin("oidc", "Harbour", "openid_connect", "https://id.example.org/realm", "o", "u"),
    )
    assert social_logins(Environment(server))[0].origin == "https://id.example.org"
    assert CLIENT_SECRET not in repr(SocialLogin("oidc", "H", "openid_connect", "https://x", CLIENT_ID, CLIENT_SECRET))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"GOOGLE_CLIENT_ID": "g"}, "GOOGLE_CLIENT_SECRET is missing"),
        ({"GITHUB_CLIENT_SECRET": "t"}, "GITHUB_CLIENT_ID is missing"),
        ({"OIDC_CLIENT_ID": "o", "OIDC_CLIENT_SECRET": "u"}, "OIDC_SERVER_URL is missing"),
        ({"OIDC_SERVER_URL": "https://id.example.org"}, "OIDC_CLIENT_ID is missing"),
        ({"OIDC_SERVER_URL": "nonsense"}, "OIDC_SERVER_URL"),
    ],
)
def test_half_of_one_refuses_to_start_and_names_the_other_half(values: dict[str, str], named: str) -> None:
    with pytest.raises(BadSetting, match=named):
        social_logins(Environment(values))
