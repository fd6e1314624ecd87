"""The first plans, packs and prices, and the lock of a purse that also says by which plan its day was opened."""

from datetime import date

from django.db import migrations

PLANS = [("free", "Free", 50, None), ("pro", "Pro", 150, 3_000)]
PACKS = [("500", 500, 2_000), ("1500", 1_500, 5_400), ("4000", 4_000, 12_800)]
PRO_CENTS = 1_900
BEGINNING = date(2026, 1, 1)

LOCK = """
DROP FUNCTION billing_lock;
CREATE FUNCTION billing_lock(of_person uuid, of_run uuid)
RETURNS TABLE (kind varchar, bucket varchar, id uuid, amount bigint, day date, granted integer, is_blocked boolean,
               plan varchar, plan_until timestamptz)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT kind, bucket, id, balance, day, granted, blocked_at IS NOT NULL, plan, plan_until
        FROM billing_account WHERE person_id = of_person ORDER BY id FOR UPDATE;
    IF of_run IS NOT NULL THEN
        RETURN QUERY
            SELECT 'hold'::varchar, account.bucket, NULL::uuid, sum(entry.amount)::bigint, hold.day, 0, false,
                   ''::varchar, NULL::timestamptz
            FROM billing_transaction hold
            JOIN billing_entry entry ON entry.transaction_id = hold.id
            JOIN billing_account account ON account.id = entry.account_id AND account.kind = 'held'
            WHERE hold.run_id = of_run AND hold.person_id = of_person AND hold.kind = 'hold'
            GROUP BY account.bucket, hold.day ORDER BY account.bucket, hold.day;
    END IF;
END $$;
"""
RIGHTS = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'klerai_app') THEN
        GRANT UPDATE (plan, plan_until) ON billing_account TO klerai_app;
    END IF;
END $$;
"""


def offer(apps, schema_editor):
    Plan, Pack, Price = (apps.get_model("billing", name) for name in ("Plan", "Pack", "Price"))
    for name, title, daily, period in PLANS:
        Plan.objects.create(name=name, title=title, daily_credits=daily, period_credits=period)
    Price.objects.create(plan_id="pro", cents=PRO_CENTS, currency="usd", starts_on=BEGINNING)
    for slug, credits, cents in PACKS:
        Pack.objects.create(slug=slug, title=f"{credits:,} credits", credits=credits)
        Price.objects.create(pack_id=slug, cents=cents, currency="usd", starts_on=BEGINNING)


class Migration(migrations.Migration):
    dependencies = [("billing", "0002_plans_packs_and_stripe")]
    operations = [
        migrations.RunSQL(LOCK + RIGHTS, migrations.RunSQL.noop),
        migrations.RunPython(offer, migrations.RunPython.noop),
    ]
