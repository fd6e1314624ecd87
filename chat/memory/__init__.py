"""Dual-track memory: what is kept whole, what is sent, and how one is found from the other."""
