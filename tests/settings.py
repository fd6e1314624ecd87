"""The product's settings over a test database of the embedded server: no network, no key."""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import replace
from pathlib import Path

from klerai.postgres import APP, EmbeddedServer

# What the person running the tests has configured must not reach them; what a test gives its own children must.
_OURS = re.compile(
    r"(SECRET_KEY|DEBUG|ALLOWED_HOSTS|DATABASE_URL|REDIS_URL|EMAIL_URL|DEFAULT_FROM_EMAIL|KLERAI_(?!REQUIRE_|WRITE_|FULL$|SEED$|THOROUGH$).*"
    r"|STRIPE_.*|GITHUB_PERSONAL_ACCESS_TOKEN|CONTEXT7_.*|.*_API_KEY|.*_BASE_URL|[A-Z_]+_MODEL)(_FILE)?"
)
if "KLERAI_TEST_RUN" not in os.environ:
    for _name in filter(_OURS.fullmatch, list(os.environ)):
        del os.environ[_name]
    os.environ["KLERAI_TEST_RUN"] = uuid.uuid4().hex[:10]

TEST_DATABASE = f"test_{os.environ['KLERAI_TEST_RUN']}_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
TEST_DATA_DIR = Path(__file__).resolve().parent.parent / ".klerai" / "tests"

if "KLERAI_TEST_KEEP_URL" not in os.environ:
    os.environ["DATABASE_URL"] = EmbeddedServer(TEST_DATA_DIR).url(APP, database=TEST_DATABASE)
os.environ.setdefault("KLERAI_DATA_DIR", str(TEST_DATA_DIR))
os.environ.setdefault("SECRET_KEY", "only-for-tests-" + "x" * 40)
os.environ.setdefault("KLERAI_STRATEGY", "offline")

from klerai.settings import *
from klerai.settings import CONTEXT7, DATABASES

ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1", "[::1]"]
DATABASES["default"]["OPTIONS"].pop("pool", None)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ACCOUNT_RATE_LIMITS = False
CONTEXT7 = replace(CONTEXT7, base_url="http://127.0.0.1:9/api")  # nobody is there; a test starts the fake
# Nobody listens there: a test that means a service outside runs a fake and points these at it.
PERPLEXITY_BASE_URL = OPEN_METEO_BASE_URL = OPEN_METEO_GEOCODING_BASE_URL = "http://127.0.0.1:9"
