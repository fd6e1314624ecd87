"""How long a vendor is waited for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """The waits of one model call.

    `first_token_seconds` runs from the request to the first token of the answer, `silence_seconds` between any two
    reads after it. `pause_seconds` is how long reading rests after words were given out, so that a fast model costs a
    few large reads in place of many small ones; the first words never wait for it.
    """

    connect_seconds: float = 5
    first_token_seconds: float = 30
    silence_seconds: float = 30
    pause_seconds: float = 0.04
