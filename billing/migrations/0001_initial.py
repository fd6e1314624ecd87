"""The ledger and the rules the database keeps by itself."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

KINDS = ["wallet", "held", "issued", "spent", "expired"]
BUCKETS = ["daily", "pack"]
MOVEMENTS = ["grant", "hold", "settle", "release", "expire", "revoke"]

NUMBER = "ALTER TABLE billing_transaction ADD COLUMN number bigint NOT NULL GENERATED ALWAYS AS IDENTITY"

# Balances change several times a run and never sit in an index: room on the page keeps those updates in place.
ROOM = "ALTER TABLE billing_account SET (fillfactor = 70)"

APPEND_ONLY = """
CREATE FUNCTION billing_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON billing_transaction
    FOR EACH ROW EXECUTE FUNCTION billing_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON billing_entry
    FOR EACH ROW EXECUTE FUNCTION billing_append_only();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON billing_transaction
    FOR EACH STATEMENT EXECUTE FUNCTION billing_append_only();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON billing_entry
    FOR EACH STATEMENT EXECUTE FUNCTION billing_append_only();
CREATE TRIGGER never_deleted BEFORE DELETE ON billing_account
    FOR EACH ROW EXECUTE FUNCTION billing_append_only();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON billing_account
    FOR EACH STATEMENT EXECUTE FUNCTION billing_append_only();
"""

# Runs as the owner of the tables, because the role of the application may not write a balance.
BALANCE = """
CREATE FUNCTION billing_apply_entries() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (
        SELECT FROM fresh
        JOIN billing_transaction movement ON movement.id = fresh.transaction_id
        JOIN billing_account account ON account.id = fresh.account_id
        GROUP BY movement.id
        HAVING sum(fresh.amount) <> 0 OR bool_or(account.person_id <> movement.person_id) OR count(*) <> (
            SELECT count(*) FROM billing_entry entry WHERE entry.transaction_id = movement.id)
    ) THEN
        RAISE EXCEPTION 'the entries of a transaction are of one person, are written together and sum to zero'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    UPDATE billing_account account SET balance = account.balance + change.amount
    FROM (SELECT account_id, sum(amount)::bigint AS amount FROM fresh GROUP BY account_id) change
    WHERE account.id = change.account_id;
    RETURN NULL;
END $$;
CREATE TRIGGER apply_entries AFTER INSERT ON billing_entry REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION billing_apply_entries();

CREATE FUNCTION billing_guard_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.balance <> 0 OR NEW.kind NOT IN ('wallet', 'held', 'issued', 'spent', 'expired')
           OR NEW.bucket NOT IN ('daily', 'pack') THEN
            RAISE EXCEPTION 'an account starts empty and is of a known kind and bucket'
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    ELSIF (NEW.id, NEW.person_id, NEW.kind, NEW.bucket) IS DISTINCT FROM (OLD.id, OLD.person_id, OLD.kind, OLD.bucket)
    THEN
        RAISE EXCEPTION 'an account keeps its person, kind and bucket'
            USING ERRCODE = 'integrity_constraint_violation';
    ELSIF NEW.balance <> OLD.balance THEN
        RAISE EXCEPTION 'a balance changes only through entries' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON billing_account
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION billing_guard_account();
"""

# Unbalanced entries are refused at once; this one, at commit, also finds a transaction without any.
SUM = """
CREATE FUNCTION billing_sums_to_zero() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT coalesce(sum(amount), 1) FROM billing_entry WHERE transaction_id = NEW.id) <> 0 THEN
        RAISE EXCEPTION 'transaction % does not sum to zero', NEW.key
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER sums_to_zero AFTER INSERT ON billing_transaction DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION billing_sums_to_zero();
"""

# The two statements of every movement. As functions they keep their plans; sent as text, planning them again each time
# costs more than running them. A plan lives as long as its connection, so one made while the tables were new must not
# be a scan. Each statement inside sees what was committed before it began: what is read after the lock is what stood
# when the lock was given.
DOORS = """
CREATE FUNCTION billing_lock(of_person uuid, of_run uuid)
RETURNS TABLE (kind varchar, bucket varchar, id uuid, amount bigint, day date, granted integer, is_blocked boolean)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT kind, bucket, id, balance, day, granted, blocked_at IS NOT NULL
        FROM billing_account WHERE person_id = of_person ORDER BY id FOR UPDATE;
    IF of_run IS NOT NULL THEN
        RETURN QUERY
            SELECT 'hold'::varchar, account.bucket, NULL::uuid, sum(entry.amount)::bigint, hold.day, 0, false
            FROM billing_transaction hold
            JOIN billing_entry entry ON entry.transaction_id = hold.id
            JOIN billing_account account ON account.id = entry.account_id AND account.kind = 'held'
            WHERE hold.run_id = of_run AND hold.person_id = of_person AND hold.kind = 'hold'
            GROUP BY account.bucket, hold.day ORDER BY account.bucket, hold.day;
    END IF;
END $$;

CREATE FUNCTION billing_append(
    new_key varchar, new_kind varchar, new_person uuid, new_run uuid, new_day date, new_reason varchar, new_by uuid,
    new_at timestamptz, new_daily bigint, new_pack bigint, accounts uuid[], amounts bigint[]
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    made uuid := gen_random_uuid();
BEGIN
    IF new_kind = 'hold' AND EXISTS (
        SELECT FROM billing_transaction
        WHERE run_id = new_run AND (kind IN ('settle', 'release') OR person_id <> new_person)
    ) THEN
        RETURN false;
    END IF;
    INSERT INTO billing_transaction
        (id, key, kind, person_id, run_id, day, reason, created_by, created_at, daily_after, pack_after)
    VALUES (made, new_key, new_kind, new_person, new_run, new_day, new_reason, new_by, new_at, new_daily, new_pack)
    ON CONFLICT (key) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO billing_entry (transaction_id, account_id, amount)
    SELECT made, account, amount FROM unnest(accounts, amounts) AS move (account, amount);
    RETURN true;
END $$;
"""

RIGHTS = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'klerai_app') THEN
        REVOKE UPDATE, DELETE, TRUNCATE ON billing_transaction, billing_entry FROM klerai_app;
        REVOKE UPDATE, DELETE, TRUNCATE ON billing_account FROM klerai_app;
        GRANT UPDATE (day, granted, blocked_at) ON billing_account TO klerai_app;
    END IF;
END $$;
"""

UNDO = """
DROP FUNCTION billing_append_only, billing_apply_entries, billing_guard_account, billing_sums_to_zero, billing_lock,
    billing_append CASCADE;
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Account",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("person_id", models.UUIDField()),
                ("kind", models.CharField(choices=[(k, k.title()) for k in KINDS], max_length=8)),
                ("bucket", models.CharField(choices=[(b, b.title()) for b in BUCKETS], max_length=8)),
                ("balance", models.BigIntegerField(db_default=0)),
                ("day", models.DateField(blank=True, null=True)),
                ("granted", models.PositiveIntegerField(db_default=0)),
                ("blocked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("person_id", "kind", "bucket"), name="account_is_unique"),
                    models.CheckConstraint(
                        condition=models.Q(("balance__gte", 0), ("kind", "issued"), _connector="OR"),
                        name="account_is_never_overdrawn",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Transaction",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=200)),
                ("kind", models.CharField(choices=[(k, k.title()) for k in MOVEMENTS], max_length=8)),
                ("person_id", models.UUIDField()),
                ("run_id", models.UUIDField(blank=True, null=True)),
                ("day", models.DateField(blank=True, null=True)),
                ("reason", models.CharField(blank=True, db_default="", max_length=500)),
                ("created_by", models.UUIDField(blank=True, null=True)),
                ("created_at", models.DateTimeField()),
                ("daily_after", models.BigIntegerField()),
                ("pack_after", models.BigIntegerField()),
            ],
            options={"permissions": [("grant_credits", "Can grant credits")]},
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(NUMBER, migrations.RunSQL.noop)],
            state_operations=[migrations.AddField("transaction", "number", models.BigIntegerField(editable=False))],
        ),
        migrations.AddIndex(
            "transaction", models.Index(fields=["person_id", "number"], name="transaction_of_person")
        ),
        migrations.AddIndex(
            "transaction",
            models.Index(
                condition=models.Q(("run_id__isnull", False)), fields=["run_id"], name="transaction_of_run"
            ),
        ),
        migrations.AddConstraint(
            "transaction", models.UniqueConstraint(fields=("key",), name="transaction_key_is_unique")
        ),
        migrations.AddConstraint(
            "transaction",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind__in", ["hold", "settle", "release"]), ("run_id__isnull", False)),
                    models.Q(("kind__in", ["grant", "expire", "revoke"]), ("run_id__isnull", True)),
                    _connector="OR",
                ),
                name="transaction_names_its_run",
            ),
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("amount", models.BigIntegerField()),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="billing.account",
                    ),
                ),
                (
                    "transaction",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="billing.transaction",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "entries",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount", 0), _negated=True), name="entry_moves_something"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gte", -1000000), ("amount__lte", 1000000)),
                        name="entry_is_bounded",
                    ),
                ],
            },
        ),
        migrations.RunSQL(ROOM + ";" + APPEND_ONLY + BALANCE + SUM + DOORS + RIGHTS, UNDO),
    ]
