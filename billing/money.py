"""Amounts of money as people write them. All of them are US dollars."""

from __future__ import annotations


def in_dollars(cents: int) -> str:
    """$20, but $19.50."""
    return f"${cents / 100:,.2f}".removesuffix(".00")


def in_cents(each: float) -> str:
    """What one credit comes to: 0.63 ¢, 4.0 ¢."""
    return f"{each:.{2 if each < 1 else 1}f}\N{NO-BREAK SPACE}¢"
