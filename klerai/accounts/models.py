"""People and the keys their programs use."""

from __future__ import annotations

import uuid
import zoneinfo
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower

from klerai.accounts.access import Access, every_scope
from klerai.accounts.count_rows import RequestCount as RequestCount
from klerai.accounts.export_rows import Export as Export
from klerai.accounts.export_rows import ExportPiece as ExportPiece


def check_time_zone(name: str) -> None:
    if name not in zoneinfo.available_timezones():
        raise ValidationError("%(name)s is not a time zone.", params={"name": name})


class PersonManager(BaseUserManager["Person"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> Person:
        person = self.model(email=self.normalize_email(email).lower(), **fields)
        person.set_password(password)
        person.save(using=self._db)
        return person

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> Person:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class Person(AbstractBaseUser, PermissionsMixin):
    """Somebody with an e-mail address. The balance is never here: it is in the ledger."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=80, blank=True)
    time_zone = models.CharField(max_length=64, default="UTC", validators=[check_time_zone])
    time_zone_changed_at = models.DateTimeField(null=True, blank=True)
    theme = models.CharField(max_length=6, blank=True, choices=[("light", "Light"), ("dark", "Dark")])
    ceiling_credits = models.PositiveSmallIntegerField(
        default=25, validators=[MinValueValidator(5), MaxValueValidator(1000)]
    )
    email_verified_at = models.DateTimeField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PersonManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name_plural = "people"
        constraints = [
            models.UniqueConstraint(Lower("email"), name="person_email_is_unique_in_any_case"),
            models.CheckConstraint(condition=models.Q(ceiling_credits__gte=5), name="person_ceiling_covers_a_question"),
        ]

    def __str__(self) -> str:
        return self.email

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        return zoneinfo.ZoneInfo(self.time_zone)

    @property
    def is_verified(self) -> bool:
        return self.email_verified_at is not None


class ApiKey(models.Model):
    """A secret that signs a program in. Only its hash is stored; the text is shown once."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(Person, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80, default="default")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=8), default=every_scope)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(scopes__contained_by=Access.values) & ~models.Q(scopes=[]),
                name="key_has_known_scopes",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} (kl_{self.prefix}…)"


class EmailChange(models.Model):
    """A new address that was asked for and not confirmed yet; it opens nothing and belongs to nobody until then."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.OneToOneField(Person, on_delete=models.CASCADE, related_name="email_change")
    email = models.EmailField()
    asked_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.email
