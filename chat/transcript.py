"""What the model is shown of a conversation before the question."""

from __future__ import annotations

from chat.messages import AssistantMessage, Message, UserMessage
from chat.models import Item, Run
from chat.profiles import Profile
from chat.queries import branch_to, items_of

NO_ANSWER = "[There was no answer to this.]"


def recall(run: Run, profile: Profile) -> list[Message]:
    """The last messages of the branch that the run's question follows, within the mode's window."""
    past = branch_to(run.parent, last=profile.window // 2)
    items = items_of(past)
    messages: list[Message] = []
    for earlier in past:
        texts = {item.kind: item.content for item in items[earlier.pk]}
        messages.append(UserMessage(texts[Item.Kind.QUERY]))
        messages.append(AssistantMessage(texts.get(Item.Kind.RESPONSE, NO_ANSWER)))
    return messages
