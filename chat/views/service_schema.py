"""What else is described: a document's file, the state of the server, and Stripe's announcements."""

from __future__ import annotations

from chat.views.operation_schema import answer, as_json, in_header, in_path, operation
from klerai.accounts.access import Access
from klerai.json_schema import ANYTHING, FLAG, SLUG, TEXT, UUID, Json, record

_READY = record(ready=FLAG, database=TEXT, pgvector=TEXT, migrations=TEXT, worker=TEXT)


def paths() -> Json:
    original = operation(
        "document_original",
        "The file as it was given, to be saved.",
        tag="knowledge-bases",
        opens_to=(Access.READ,),
        parameters=[in_path("slug", SLUG), in_path("document_id", UUID)],
        answers=answer({"application/octet-stream": {"schema": {}}}),
    )
    alive = operation(
        "healthz",
        "Alive. Touches nothing else.",
        tag="server",
        opens_to=None,
        answers=answer({"text/plain": {"schema": TEXT}}),
    )
    ready = operation(
        "readyz",
        "Each part is “ok”, or a sentence that says what to do.",
        tag="server",
        opens_to=None,
        answers={**answer(as_json(_READY)), **answer(as_json(_READY), status=503, words="Something is missing.")},
    )
    announced = operation(
        "stripe_webhook",
        "For Stripe alone: an announcement, signed over its bytes. The second time it is taken in without effect.",
        tag="server",
        opens_to=None,
        parameters=[in_header("Stripe-Signature", TEXT, "Stripe's signature.")],
        body=as_json(ANYTHING),
        answers=answer(as_json(record(received=FLAG))),
        refusals=(404,),
    )
    return {
        "/api/knowledge-bases/{slug}/documents/{document_id}/original": {"get": original},
        "/healthz": {"get": alive},
        "/readyz": {"get": ready},
        "/webhooks/stripe": {"post": announced},
    }
