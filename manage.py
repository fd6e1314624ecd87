#!/usr/bin/env python
"""Everything KlerAI does from a terminal starts here."""

from __future__ import annotations

import sys
from pathlib import Path

from klerai.launch import launch

if __name__ == "__main__":
    sys.exit(launch(sys.argv, env_file=Path(__file__).with_name(".env")))
