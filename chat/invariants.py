"""What must hold for every run, whatever happened: the ledger's own rules and those that tie it to runs."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from billing.audit import Violation
from billing.audit import violations as ledger_violations
from chat.profiles import PROFILES

GRACE = timedelta(seconds=60)
_DEADLINE = timedelta(seconds=max(profile.deadline_seconds for profile in PROFILES.values()))

_CHECKS = {
    "I4": (
        """
        SELECT hold.run_id::text, 'holds credits and has ended'
        FROM (SELECT DISTINCT run_id FROM billing_transaction WHERE kind = 'hold') hold
        LEFT JOIN billing_transaction resolve ON resolve.key = 'resolve:' || hold.run_id
        LEFT JOIN chat_run run ON run.id = hold.run_id
        WHERE resolve.id IS NULL AND (run.id IS NULL OR run.state NOT IN ('queued', 'running'))
        """
    ),
    "I6": (
        """
        SELECT run.id::text, run.state || ' with ' || coalesce(resolve.kind, 'no resolve')
        FROM chat_run run
        LEFT JOIN billing_transaction resolve ON resolve.key = 'resolve:' || run.id
        WHERE run.state NOT IN ('queued', 'running')
          AND coalesce(resolve.kind, '') <> CASE
              WHEN run.state = 'completed' THEN 'settle'
              WHEN run.state = 'stopped' AND run.error IS NULL THEN 'settle'
              ELSE 'release' END
        """
    ),
    "I7": (
        """
        SELECT id::text, 'still ' || state || ' since ' || created_at
        FROM chat_run WHERE state IN ('queued', 'running') AND created_at < %(too_old)s
        """
    ),
    "I8": (
        """
        SELECT run.id::text, 'has ' || count(event.seq) || ' events, numbered ' || coalesce(min(event.seq), 0) || ' to '
            || coalesce(max(event.seq), 0) || ', '
            || count(*) FILTER (WHERE event.type IN ('message_complete', 'error')) || ' of them terminal'
        FROM chat_run run LEFT JOIN chat_runevent event ON event.run_id = run.id
        WHERE NOT run.is_temporary  -- its events are in no row
        GROUP BY run.id, run.state, run.last_seq
        HAVING count(event.seq) <> coalesce(max(event.seq), 0)
            OR coalesce(min(event.seq), 1) <> 1
            OR coalesce(max(event.seq), 0) > run.last_seq
            OR run.state NOT IN ('queued', 'running') AND (
                count(*) FILTER (WHERE event.type IN ('message_complete', 'error')) <> 1
                OR coalesce(max(event.seq), 0) <> run.last_seq)
            OR run.state IN ('queued', 'running')
                AND count(*) FILTER (WHERE event.type IN ('message_complete', 'error')) > 0
        """
    ),
    "temporary": (
        """
        SELECT run.id::text, 'is temporary and has rows of words'
        FROM chat_run run JOIN chat_conversation talk ON talk.id = run.conversation_id
        WHERE run.is_temporary AND (
            talk.title <> '' OR run.citations <> '[]'
            OR EXISTS (SELECT FROM chat_item WHERE run_id = run.id)
            OR EXISTS (SELECT FROM chat_runevent WHERE run_id = run.id))
        """
    ),
    "receipt": (
        """
        SELECT run.id::text, 'receipt says ' || (run.receipt ->> 'credits') || ', ledger '
            || coalesce(paid.credits, 0) || ', lines ' || coalesce(lines.credits, 0)
        FROM chat_run run
        LEFT JOIN LATERAL (
            SELECT sum(entry.amount) AS credits FROM billing_transaction resolve
            JOIN billing_entry entry ON entry.transaction_id = resolve.id
            JOIN billing_account account ON account.id = entry.account_id AND account.kind = 'spent'
            WHERE resolve.key = 'resolve:' || run.id) paid ON true
        LEFT JOIN LATERAL (
            SELECT sum((line ->> 'credits')::int) AS credits
            FROM jsonb_array_elements(run.receipt -> 'lines') line) lines ON true
        WHERE run.state NOT IN ('queued', 'running')
          AND (run.receipt IS NULL OR (run.receipt ->> 'credits')::int <> coalesce(paid.credits, 0)
               OR coalesce(lines.credits, 0) <> coalesce(paid.credits, 0))
        """
    ),
}


def violations() -> list[Violation]:
    """Everything that does not hold now; empty when all is well."""
    found = list(ledger_violations())
    too_old = timezone.now() - _DEADLINE - GRACE
    with connection.cursor() as cursor:
        for name, query in _CHECKS.items():
            cursor.execute(query, {"too_old": too_old})
            found += [Violation(name, what, subject) for subject, what in cursor.fetchall()]
    return found
