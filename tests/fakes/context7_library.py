"""What the fake Context7 has on its shelves: libraries and their documentation in every form the service writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MIDDLEWARE = "https://github.com/vercel/next.js/blob/canary/docs/middleware.mdx"
X_AUTH = "https://docs.x.com/fundamentals/authentication"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A section: `code` makes it a code snippet, without it is prose under a breadcrumb."""

    title: str
    source: str
    words: str
    language: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Shelf:
    """A library. `state` other than finalized is answered with 202; `moved_to` with 301."""

    id: str
    title: str
    description: str = ""
    trust: float | None = None
    snippets: int | None = None
    state: str | None = "finalized"
    words: tuple[str, ...] = ()
    text: tuple[Snippet, ...] = ()
    moved_to: str = ""

    def found(self) -> dict[str, Any]:
        """As a search tells it; what is None is left out, as the service does for websites."""
        told: dict[str, Any] = {"id": self.id, "title": self.title, "description": self.description, "branch": "main"}
        optional = {"trustScore": self.trust, "totalSnippets": self.snippets, "state": self.state}
        return told | {name: value for name, value in optional.items() if value is not None}


NEXT_JS = Shelf(
    "/vercel/next.js",
    "Next.js",
    "The React framework for the web",
    trust=10,
    snippets=3_000,
    words=("next", "nextjs", "next.js"),
    text=(
        Snippet(
            "Protect a route in middleware",
            MIDDLEWARE,
            "Reads the session cookie and redirects to /login when it is missing.",
            "TypeScript",
            "import { NextResponse } from 'next/server'\n"
            "export function middleware(req) {\n"
            "  return req.cookies.get('sid') ? NextResponse.next() : "
            "NextResponse.redirect(new URL('/login', req.url))\n}",
        ),
        Snippet("Matching paths", MIDDLEWARE, "Use `config.matcher` to limit the paths on which middleware runs."),
        Snippet(
            "Front matter of a page",
            f"{MIDDLEWARE}#front-matter",
            "A page may begin with metadata between lines of dashes.",
            "yaml",
            "--------------------------------\n### title: Hello\nlayout: post\n--------------------------------",
        ),
        Snippet("Image sizes", "https://nextjs.org/docs/image", "The sizes property tells how wide an image will be."),
        Snippet("Static export", "https://nextjs.org/docs/export", "Set output to export for plain HTML files."),
        Snippet("Fonts", "https://nextjs.org/docs/fonts", "The font module hosts web fonts beside the application."),
        Snippet("Internationalisation", "https://nextjs.org/docs/i18n", "Locales are part of the path or the domain."),
        Snippet("Draft mode", "https://nextjs.org/docs/draft", "Draft mode shows content before it is published."),
    ),
)
X_API = Shelf(
    "/websites/x_developer",
    "X API",
    "The API of X, formerly Twitter",
    trust=9,
    snippets=800,
    words=("x api", "twitter"),
    text=(
        Snippet(
            "OAuth 2.0 with PKCE",
            f"{X_AUTH}/oauth-2-0",
            "Send the person to the authorize address with a code challenge, then trade the code for a token.",
            "bash",
            "curl -X POST https://api.x.com/2/oauth2/token -d grant_type=authorization_code",
        ),
        Snippet(
            "OAuth setup in the portal", f"{X_AUTH}/apps", "Register a callback address under user authentication."
        ),
        Snippet(
            "Posting", "https://docs.x.com/x-api/posts", "Create a post with POST /2/tweets.", "bash", "curl -X POST"
        ),
    ),
)
TWITTER_TOOLS = Shelf(
    "/someone/twitter-tools", "Twitter Tools", "Odds and ends", trust=3, snippets=12, words=("twitter", "x api")
)
HOOK_FORM = Shelf(
    "/react-hook-form/documentation",
    "React Hook Form",
    "Official documentation",
    trust=9.1,
    snippets=274,
    words=("react", "form"),
    text=(Snippet("Validation", "https://react-hook-form.com/validation", "Register a field with its rules."),),
)
REACT = Shelf(
    "/facebook/react",
    "React",
    "A library for user interfaces",
    trust=10,
    snippets=2_500,
    words=("react",),
    text=(Snippet("State", "https://react.dev/state", "useState declares a state variable."),),
)
WEBSITE = Shelf(
    "/websites/bare", "Bare", state=None, words=("bare",), text=(Snippet("Only", "not an address", "One."),)
)
HALF_READ = Shelf("/acme/half-read", "Half Read", state="processing", words=("half",))
UNREADY = Shelf("/acme/unready", "Unready", words=("unready",))  # a search says finalized, the text is not there yet
MOVED = Shelf("/acme/old-home", "Old Home", words=("old home",), moved_to="/vercel/next.js")
RUNAWAY = Shelf("/acme/runaway", "Runaway", words=("runaway",), moved_to="/acme/runaway")
SHELVES = (NEXT_JS, X_API, TWITTER_TOOLS, HOOK_FORM, REACT, WEBSITE, HALF_READ, UNREADY, MOVED, RUNAWAY)


def as_text(snippets: tuple[Snippet, ...]) -> str:
    """The layout of today: Markdown, parted by 32 dashes."""
    return f"\n\n{'-' * 32}\n\n".join(map(_newer, snippets)) + "\n"


def as_older_text(snippets: tuple[Snippet, ...]) -> str:
    """The layout of early 2025: a banner, fields in capitals, parted by 40 dashes."""
    banner = f"{'=' * 24}\nCODE SNIPPETS\n{'=' * 24}\n"
    return banner + f"\n\n{'-' * 40}\n\n".join(map(_older, snippets)) + "\n"


def as_json(snippets: tuple[Snippet, ...]) -> dict[str, Any]:
    code = [
        {
            "codeTitle": one.title,
            "codeDescription": one.words,
            "codeLanguage": one.language.lower(),
            "codeTokens": 150,
            "codeId": f"{one.source}#_snippet_{number}" if "#" not in one.source else one.source,
            "pageTitle": one.title,
            "codeList": [{"language": one.language.lower(), "code": one.code}],
        }
        for number, one in enumerate(snippets)
        if one.code
    ]
    info = [
        {"pageId": one.source, "breadcrumb": f"Docs > {one.title}", "content": one.words, "contentTokens": 30}
        for one in snippets
        if not one.code
    ]
    return {"codeSnippets": code, "infoSnippets": info}


def _newer(one: Snippet) -> str:
    code = f"\n\n```{one.language.lower()}\n{one.code}\n```" if one.code else ""
    return f"### {one.title}\n\nSource: {one.source}\n\n{one.words}{code}"


def _older(one: Snippet) -> str:
    code = f"\n\nLANGUAGE: {one.language}\nCODE:\n```\n{one.code}\n```" if one.code else ""
    return f"TITLE: {one.title}\nDESCRIPTION: {one.words}\n\nSOURCE: {one.source}{code}"
