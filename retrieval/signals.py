"""What retrieval tells whoever listens."""

from __future__ import annotations

from django.dispatch import Signal

document_ready = Signal()
"""A document can be found: sent after the commit that made it so, with `document_id` (a UUID)."""
