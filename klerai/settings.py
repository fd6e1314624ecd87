"""Django settings: every value comes from the environment, typed and checked in klerai/env.py."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import dj_database_url
import font_source_serif_pro
from csp.constants import NONCE, NONE, SELF

from billing.stripe_settings import stripe_settings
from chat.mcp.configuration import mcp_settings
from chat.strategies.vendors import chosen_strategy, model_access, model_name
from klerai.accounts.addresses import trusted_networks
from klerai.accounts.social_settings import social_logins
from klerai.encryption import encryption_keys
from klerai.env import BadSetting, Environment
from klerai.mail import mail_settings
from retrieval.documentation.service import context7_settings
from retrieval.embedders.kinds import VOYAGE_MODELS, chosen_embedder

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment(os.environ)

# What runs here. `KLERAI_LOCAL` is set by klerai/launch.py alone.
LOCAL_MODE = env.flag("KLERAI_LOCAL")
DEBUG = env.flag("DEBUG")
DATA_DIR = Path(env.text("KLERAI_DATA_DIR", str(BASE_DIR / ".klerai"))).expanduser().resolve()
BASE_URL = env.url("KLERAI_BASE_URL", "http://127.0.0.1:8000")
IS_HTTPS = BASE_URL.startswith("https://")


def _secret_key() -> str:
    key = env.secret("SECRET_KEY")
    if key:
        return key
    if not LOCAL_MODE:
        raise BadSetting(
            "SECRET_KEY",
            "is missing. Set it to a long random text; only `manage.py up` on this machine makes one of its own.",
        )
    file = DATA_DIR / "secret_key"
    try:
        return file.read_text()
    except FileNotFoundError:
        DATA_DIR.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=DATA_DIR, prefix="secret_key-") as made:
            made.write(secrets.token_urlsafe(50))
            made.flush()
            with suppress(FileExistsError):  # whole or not at all, and of two that start the first one wins
                os.link(made.name, file)
        return file.read_text()


SECRET_KEY = _secret_key()
ENCRYPTION_KEYS = encryption_keys(env, SECRET_KEY)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]" if LOCAL_MODE or DEBUG else "")
TRUSTED_PROXIES = trusted_networks(env)
STRIPE = stripe_settings(env, local=LOCAL_MODE, secret=SECRET_KEY)

INSTALLED_APPS = [
    *(["daphne"] if DEBUG else []),  # its runserver, for developing; Twisted costs every other start a second
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "klerai.apps.AdminConfig",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.usersessions",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "lucide",
    "procrastinate.contrib.django",
    "klerai.apps.KlerAIConfig",
    "klerai.accounts",
    "billing",
    "retrieval",
    "chat",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "klerai.accounts.middleware.note_sessions",
    "klerai.accounts.middleware.state_limits",
]

ROOT_URLCONF = "klerai.urls"
ASGI_APPLICATION = "klerai.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["lucide.templatetags.lucide"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "klerai.context.page",
            ],
        },
    },
]

# Data. The pool hands connections to threads; CONN_MAX_AGE stays 0 under ASGI.
_database: dict[str, Any] = dict(dj_database_url.parse(env.text("DATABASE_URL", "postgresql:///klerai")))
_database["CONN_MAX_AGE"] = 0
_database.setdefault("OPTIONS", {})["pool"] = {
    "min_size": 1,
    "max_size": 16,
    "timeout": 10,
    "max_lifetime": 1800,
    "max_idle": 300,
}
# Statements stay prepared on their connection: that is a third of PostgreSQL's work for a question.
_database["OPTIONS"] |= {"server_side_binding": True, "prepare_threshold": 3}
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.url("REDIS_URL", schemes=("redis", "rediss", "unix"))
# The login limits count here, so it is in Postgres: one count for all processes, and Redis may be lost.
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "klerai_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
if REDIS_URL:
    # Not "default": sockets would listen there, and end when Redis does.
    CHANNEL_LAYERS = {"wakeups": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}}
    CACHES["redis"] = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}

# People
AUTH_USER_MODEL = "accounts.Person"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}Validator"}
    for name in ("UserAttributeSimilarity", "MinimumLength", "CommonPassword", "NumericPassword")
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "/"
SIGNUP = env.choice("KLERAI_SIGNUP", "open", ("open", "invite", "closed"))
SOCIAL_LOGINS = social_logins(env)
SOCIALACCOUNT_ADAPTER = "klerai.accounts.social_adapter.SocialAdapter"
ACCOUNT_ADAPTER = "klerai.accounts.adapter.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_UNIQUE_EMAIL = True
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_SESSION_REMEMBER = None
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_FORMS = {
    "login": "klerai.accounts.forms.LoginForm",
    "signup": "klerai.accounts.forms.SignupForm",
    "reset_password": "klerai.accounts.forms.ResetPasswordForm",
    "reset_password_from_key": "klerai.accounts.forms.NewPasswordForm",
    "change_password": "klerai.accounts.forms.ChangePasswordForm",
    "set_password": "klerai.accounts.forms.SetPasswordForm",
    "reauthenticate": "klerai.accounts.forms.ReauthenticateForm",
}
MFA_ADAPTER = "klerai.accounts.mfa_adapter.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "KlerAI"
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_FORMS = {
    "authenticate": "klerai.accounts.second_factor_forms.SignInCodeForm",
    "reauthenticate": "klerai.accounts.second_factor_forms.ConfirmCodeForm",
    "activate_totp": "klerai.accounts.second_factor_forms.FirstCodeForm",
}
DEMO_PASSWORD = env.secret("KLERAI_DEMO_PASSWORD")

SESSION_COOKIE_NAME = "__Host-sessionid" if IS_HTTPS else "sessionid"
CSRF_COOKIE_NAME = "__Host-csrftoken" if IS_HTTPS else "csrftoken"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = [BASE_URL] if IS_HTTPS else []
SECURE_SSL_REDIRECT = IS_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        **{kind: [SELF] for kind in ("style-src", "img-src", "font-src", "connect-src")},
        "form-action": [SELF, *STRIPE.pages, *(login.origin for login in SOCIAL_LOGINS)],
        **{kind: [NONE] for kind in ("frame-ancestors", "base-uri", "object-src")},
    },
}

# Mail goes through the queue; the queue's task delivers by EMAIL_URL, or into files in local mode.
EMAIL_BACKEND = "klerai.mail_queue.QueuedBackend"
DELIVERY = mail_settings(env, local=LOCAL_MODE or DEBUG, folder=DATA_DIR / "mail")
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "KlerAI <klerai@localhost>")

# Words and files
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = None  # ServeStatic serves files from where they lie; nothing is collected.
STATICFILES_DIRS = [BASE_DIR / "static", ("fonts", str(Path(font_source_serif_pro.__file__).parent / "files"))]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 2**20

# Programs
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["klerai.accounts.authentication.PersonAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["klerai.accounts.authentication.ByScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,  # what there is to know of a door stands in the description
    "EXCEPTION_HANDLER": "klerai.api.error_response",
    "UNAUTHENTICATED_USER": None,
}
REQUEST_LIMITS = "billing.plans.request_limits_of"  # a plan says how many; accounts know of no plans
SPECTACULAR_SETTINGS = {
    "TITLE": "KlerAI",
    "DESCRIPTION": "Ask, watch, and read the receipt.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "OAS_VERSION": "3.1.0",
    "DEFAULT_GENERATOR_CLASS": "chat.views.description.WholeApi",
}

# Runs and models
LEASE_SECONDS = env.whole("KLERAI_LEASE_SECONDS", 30, at_least=1)
DRAIN_SECONDS = env.whole("KLERAI_DRAIN_SECONDS", 30)
MAX_RUNS = env.whole("KLERAI_MAX_RUNS", 200, at_least=1)
MODEL_ACCESS = model_access(env)
STRATEGY = chosen_strategy(env, MODEL_ACCESS)
SMALL_MODEL = model_name(env, "SMALL_MODEL")
MCP = mcp_settings(env)
CONVERSATION_STORAGE = env.choice("KLERAI_CONVERSATION_STORAGE", "database", ("database", "memory"))

# Knowledge
EMBEDDER = chosen_embedder(env)
VOYAGE_API_KEY = env.secret("VOYAGE_API_KEY")
VOYAGE_BASE_URL = env.url("VOYAGE_BASE_URL")  # else the SDK's, which depends on the key
VOYAGE_MODEL = env.choice("VOYAGE_MODEL", "voyage-3-large", VOYAGE_MODELS)
GEMINI_API_KEY = env.secret("GEMINI_API_KEY")
GEMINI_BASE_URL = env.url("GEMINI_BASE_URL", "https://generativelanguage.googleapis.com")
OLLAMA_BASE_URL = env.url("OLLAMA_BASE_URL", "http://127.0.0.1:11434")
CONTEXT7 = context7_settings(env)

# Searching. How soon another occurrence of a word counts less, and how much a passage's length counts.
BM25_K1 = env.number("BM25_K1", 1.5, at_least=0, at_most=10)
BM25_B = env.number("BM25_B", 0.75, at_least=0, at_most=1)
SEARCH_FUSION = env.choice("SEARCH_FUSION", "convex", ("convex", "reciprocal_rank"))

# Tools that ask outside. Perplexity's are there with a key; the weather needs none.
PERPLEXITY_API_KEY = env.secret("PERPLEXITY_API_KEY")
PERPLEXITY_BASE_URL = env.url("PERPLEXITY_BASE_URL", "https://api.perplexity.ai")
OPEN_METEO_BASE_URL = env.url("OPEN_METEO_BASE_URL", "https://api.open-meteo.com")
OPEN_METEO_GEOCODING_BASE_URL = env.url("OPEN_METEO_GEOCODING_BASE_URL", "https://geocoding-api.open-meteo.com")

LOGGING_CONFIG = "klerai.logs.configure"
LOGGING = {"json": not (LOCAL_MODE or DEBUG)}
