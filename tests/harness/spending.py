"""A process that spends through the ledger's face: `python -m tests.harness.spending PERSON HOLDS CLIENTS`.

Once it is told to, so many clients hold a credit each, settle seven of ten and release the rest, until so many holds
were asked for. It prints what it did as JSON; what it was doing when it is killed, the database knows.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import django


def main(person_id: str, holds: int, clients: int) -> None:
    django.setup()
    from django.db import connection

    from billing import credits
    from billing.pricing import Line
    from klerai.accounts.models import Person

    person = Person.objects.get(pk=person_id)
    connection.close()  # the pool has as many as there are clients
    tickets = itertools.count()

    def spend(number: int) -> tuple[Counter[str], list[float]]:
        done: Counter[str] = Counter()
        took: list[float] = []
        try:
            while (ticket := next(tickets)) < holds:
                run_id, begun = uuid.uuid4(), time.perf_counter()
                held = credits.hold(person, run_id=run_id, amount=1)
                took.append(time.perf_counter() - begun)
                if not isinstance(held, credits.Held):
                    done["refused"] += 1
                elif ticket % 10 < 7:
                    credits.settle(person, run_id=run_id, lines=[Line("tool", None, 1, 1, 1)])
                    done["settled"] += 1
                else:
                    credits.release(person, run_id=run_id)
                    done["released"] += 1
        finally:
            connection.close()
        return done, took

    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(clients) as pool:
        results = list(pool.map(spend, range(clients)))
    counts = sum((done for done, _ in results), Counter[str]())
    seconds = sorted(second for _, took in results for second in took)
    print(json.dumps({**counts, "p95_ms": round(1000 * seconds[int(0.95 * (len(seconds) - 1))], 1)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
