"""Conversations, runs, what happened in them and what was said: the rows."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from klerai.accounts.models import Person


class Conversation(models.Model):
    """A person's tree of runs. `tip` is the end of the branch last shown; query numbers never repeat."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(Person, on_delete=models.CASCADE, related_name="conversations")
    title = models.CharField(max_length=200, blank=True)
    mode = models.CharField(max_length=20)
    is_pinned = models.BooleanField(default=False)
    is_archived = models.BooleanField(default=False)
    is_temporary = models.BooleanField(default=False)  # its words are in chat/vault.py only
    query_counter = models.PositiveIntegerField(default=0)
    tip = models.ForeignKey("Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["person", "-updated_at"], name="conversation_newest_first")]

    def __str__(self) -> str:
        return f"conversation {self.id}"


class Run(models.Model):
    """One question to its answer.

    `id` is ours and keys the ledger; `run_id` is the client's and unique for a person. `attempt` is the fence: only
    the process that holds it may write. `asked` is the body the client sent, as a hash, so that a repeated request
    is told from a different one. `depth` counts the questions of its branch, from the first one to this.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"
        STOPPED = "stopped"
        BLOCKED = "blocked"
        INTERRUPTED = "interrupted"

    LIVE = (State.QUEUED, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run_id = models.UUIDField()
    person = models.ForeignKey(Person, on_delete=models.CASCADE, related_name="runs")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children")
    depth = models.PositiveIntegerField(default=1)
    mode = models.CharField(max_length=20)
    state = models.CharField(max_length=12, choices=State.choices, default=State.RUNNING)
    asked = models.CharField(max_length=64)
    has_tools = models.BooleanField(default=True)
    is_temporary = models.BooleanField(default=False)
    ceiling_credits = models.PositiveSmallIntegerField()
    is_tainted = models.BooleanField(db_default=True)  # what follows it may read outside text, until its end says no

    attempt = models.PositiveSmallIntegerField(default=1)
    last_seq = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField()
    stop_requested_at = models.DateTimeField(null=True, blank=True)

    model = models.CharField(max_length=80, blank=True)
    error = models.JSONField(null=True, blank=True, encoder=DjangoJSONEncoder)
    citations = models.JSONField(default=list, blank=True)
    confidence = models.FloatField(null=True, blank=True)  # the model's own, where its mode asks for it
    receipt = models.JSONField(null=True, blank=True, encoder=DjangoJSONEncoder)
    summary_tokens = models.PositiveIntegerField(default=0)  # what writing this run's summaries cost, never charged
    summary_note = models.CharField(max_length=200, blank=True, db_default="")  # why some stayed mechanical
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["person", "run_id"], name="run_id_is_unique_for_a_person"),
            models.UniqueConstraint(fields=["conversation", "number"], name="query_number_never_repeats"),
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(state__in=["queued", "running"]), name="one_question_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running"], ended_at=None)
                | (~Q(state__in=["queued", "running"]) & Q(ended_at__isnull=False)),
                name="an_ended_run_has_an_end",
            ),
        ]
        indexes = [
            models.Index(fields=["person", "-created_at"], name="run_newest_first"),
            models.Index(fields=["person"], condition=Q(state__in=["queued", "running"]), name="live_runs_of_a_person"),
        ]

    def __str__(self) -> str:
        return f"run {self.run_id}"

    @property
    def query_ref(self) -> str:
        return f"q{self.number}"

    @property
    def response_ref(self) -> str:
        return f"q{self.number}-r"

    @property
    def is_live(self) -> bool:
        return self.state in self.LIVE


class RunEvent(models.Model):
    """One event of a run, as every viewer gets it."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    type = models.CharField(max_length=32)
    data = models.JSONField()
    created_at = models.DateTimeField(db_default=models.functions.Now())

    def __str__(self) -> str:
        return f"{self.type} {self.seq}"


class Confirmation(models.Model):
    """A call that waits for its person. Only digests: what it would do stands in the event they were shown."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="confirmations")
    ref = models.CharField(max_length=40)
    token_digest = models.CharField(max_length=64)
    arguments_digest = models.CharField(max_length=64)
    is_approved = models.BooleanField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "ref"], name="a_call_is_confirmed_once"),
            models.CheckConstraint(
                condition=Q(is_approved=None, decided_at=None) | Q(is_approved__isnull=False, decided_at__isnull=False),
                name="a_decision_has_its_moment",
            ),
        ]


class Item(models.Model):
    """Something said or found, under the ID the model and the person know it by.

    Two tracks, two columns: `content` is the full one, `summary` what is sent in its place, null when the content is
    short enough to be its own. `late_summary` came after the item had been sent otherwise; it takes over when the
    window folds next. `tokens` counts the content. What opened an item again keeps no copy but its ID, in `reopens`.
    A `partial` is the words of a run that ended without an answer: shown to the person, not remembered. `card` is
    what a tool card shows: label, arguments, summary, duration_ms, credits, error.
    """

    class Kind(models.TextChoices):
        QUERY = "query"
        TOOL = "tool"
        RESPONSE = "response"
        PARTIAL = "partial"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="items")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="items")
    ref = models.CharField(max_length=24)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    tool = models.CharField(max_length=128, blank=True, default="")
    content = models.TextField()
    summary = models.TextField(null=True, blank=True)
    late_summary = models.TextField(null=True, blank=True)
    tokens = models.PositiveIntegerField(default=0)
    reopens = models.CharField(max_length=24, blank=True, default="")
    card: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True, blank=True)
    is_ok = models.BooleanField(default=True)
    position = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(db_default=models.functions.Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "ref"], name="ref_is_unique_in_a_conversation")]
        indexes = [models.Index(fields=["run", "position"], name="items_of_a_run")]

    def __str__(self) -> str:
        return self.ref


class ModelCard(models.Model):
    """One model of a vendor: what it can do and, in dated rows, what it costs us. `rank` orders the stand-ins."""

    THINKING = ("none", "adaptive", "manual", "enabled")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80, unique=True)
    strategy = models.CharField(max_length=32)
    model = models.CharField(max_length=80)
    thinking = models.CharField(max_length=10, default="none", choices=[(way, way) for way in THINKING])
    honours_forced_tool = models.BooleanField(default=True)
    context_tokens = models.PositiveIntegerField(default=200_000)
    rank = models.PositiveSmallIntegerField(null=True, blank=True, help_text="When it stands in; empty: never.")
    stands_in_anywhere = models.BooleanField(default=False, help_text="Also for models of other vendors.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["strategy", "model"], name="one_card_for_a_model")]

    def __str__(self) -> str:
        return self.name


class ModelPrice(models.Model):
    """US dollars a million tokens, from a day on, for prompts up to a size (None: any size)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    card = models.ForeignKey(ModelCard, on_delete=models.CASCADE, related_name="prices")
    starts_on = models.DateField()
    prompt_up_to = models.PositiveIntegerField(null=True, blank=True)
    input = models.DecimalField(max_digits=10, decimal_places=4)
    output = models.DecimalField(max_digits=10, decimal_places=4)
    cached = models.DecimalField(max_digits=10, decimal_places=4)
    cache_written = models.DecimalField(max_digits=10, decimal_places=4)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["card", "starts_on", "prompt_up_to"], nulls_distinct=False, name="one_price_a_day_and_size"
            )
        ]

    def __str__(self) -> str:
        return f"{self.card_id} from {self.starts_on}"


class McpServer(models.Model):
    """A server that was added in the admin, reached over HTTP. Its headers, which hold its key, are kept in cipher."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=32, unique=True)
    url = models.CharField(max_length=500)
    headers_cipher = models.TextField(blank=True, default="")
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "MCP server"

    def __str__(self) -> str:
        return self.name


class GitHubToken(models.Model):
    """A person's own token for GitHub, in cipher. `ending` is what the person tells it by."""

    person = models.OneToOneField(Person, primary_key=True, on_delete=models.CASCADE, related_name="github_token")
    cipher = models.TextField()
    ending = models.CharField(max_length=4)
    created_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"GitHub token of {self.person_id}"
