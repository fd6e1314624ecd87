"""What goes wrong with a server, in sentences for the setup page and for the model.

ServerFault
├── Unavailable   it cannot be started or reached, or is not to be tried yet
├── Ended         it went away while a call was under way: what the call did is not known
├── NotHeard      it knew nothing of us any more: the call was not made and may be made again
└── BadAnswer     it answered with an error of its own, or with what cannot be read
"""

from __future__ import annotations


class ServerFault(Exception):
    """str(error) is a sentence without the server's name."""


class Unavailable(ServerFault):
    pass


class Ended(ServerFault):
    def __init__(self) -> None:
        super().__init__("It ended in the middle of this call, so what the call did is not known.")


class NotHeard(ServerFault):
    def __init__(self) -> None:
        super().__init__("It has closed this connection.")


class BadAnswer(ServerFault):
    pass
