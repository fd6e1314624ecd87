"""The sentence: how a question becomes an answer, step by step.

A question is answered by taking credits on hold, recalling memory, retrieving where the mode asks for it, running the
loop and settling the hold. The base
price is on hold since the question was taken in (chat/intake.py); the end, with its money, is one transaction
(chat/endings.py).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace

from chat.duties import Duties
from chat.endings import Answered
from chat.events import ContentChunk, ContentReplaced, Event, RunStarted, StatusUpdate
from chat.first_retrieval import first_retrieval, wants_retrieval
from chat.limits import turns_reached
from chat.loop import Closed, Happening, TurnEnded, TurnStarted, run_loop
from chat.memory.given import given_past, instructions_in
from chat.memory.recall import Recalled, recall
from chat.messages import Transcript, UserMessage
from chat.metering import Tab
from chat.models import Run
from chat.moments import moment
from chat.profiles import Profile
from chat.questions import Said
from chat.quotes import quote_of
from chat.sources import Sources
from chat.strategies.base import Card, ModelStrategy
from chat.strategies.small import SmallModel
from chat.tools.base import Tool, ToolContext
from chat.tools.confirmation import Confirmer
from chat.tools.executor import CallDone, Toolbox
from chat.tools.guard import Guard
from klerai.database import in_database


@dataclass(frozen=True, slots=True)
class Route:
    """Who answers: a strategy and the card it drives, and those asked in order when that one cannot.

    `small` does the small work around the answer, where there is such a model.
    """

    strategy: ModelStrategy
    card: Card
    spares: tuple[Route, ...] = ()
    small: SmallModel | None = None


Step = Event | CallDone | Answered


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside a run: its bill, the passages it finds and cites, and who asks its person in between.

    A `history` that the client gave stands in the place of memory. With a `knowledge_base` the run searches that one
    only.
    """

    tab: Tab
    sources: Sources
    confirmer: Confirmer
    history: tuple[Said, ...] = ()
    knowledge_base: str | None = None


async def answer(
    run: Run, message: str, *, profile: Profile, route: Route, tools: Mapping[str, Tool], beside: Beside
) -> AsyncGenerator[Step]:
    """Yield what happens, and last how the question was answered. Raises ModelFault and ModelRefused."""
    tab, sources = beside.tab, beside.sources
    quote = asdict(quote_of(profile, ceiling=run.ceiling_credits))
    yield RunStarted(str(run.conversation_id), run.query_ref, run.mode, quote)

    past = await _past(run, profile, beside.history)
    tab.note_history(full=past.full_tokens, sent=past.sent_tokens)
    material = ""
    if wants_retrieval(profile, message):
        yield StatusUpdate("retrieval", "Searching your documents")
        material = await first_retrieval(
            run.person,
            message,
            past.messages,
            sources=sources,
            small=route.small,
            knowledge_base=beside.knowledge_base,
        )
        tab.timings.note_retrieval()
    question = UserMessage(message, moment(run.person.zone), material, instructions_in(beside.history))
    transcript = Transcript(profile.prompt, [*past.messages, question])
    guard = Guard(beside.confirmer, given=[*past.asked, message], is_tainted=bool(material) or past.is_tainted)
    context = ToolContext(
        run.person_id,
        run.conversation_id,
        run.pk,
        sources=sources,
        small=route.small,
        knowledge_base=beside.knowledge_base,
    )
    mine = offered(tools, profile, has_tools=run.has_tools)
    duties = Duties(profile, mine, is_kept=not run.is_temporary)
    toolbox = Toolbox(mine, profile=profile, context=context, purse=tab, query_ref=run.query_ref, guard=guard)
    loop = run_loop(
        transcript,
        strategy=route.strategy,
        card=route.card,
        toolbox=toolbox,
        duties=duties,
        profile=profile,
        sources=sources,
    )
    async with aclosing(loop) as happenings, aclosing(_noted(happenings, profile, beside)) as steps:
        async for step in steps:
            yield replace(step, is_tainted=guard.is_tainted) if isinstance(step, Answered) else step


async def _noted(happenings: AsyncGenerator[Happening], profile: Profile, beside: Beside) -> AsyncGenerator[Step]:
    """What happens, written down on the bill, and last the words of the last turn as the answer."""
    tab, sources = beside.tab, beside.sources
    words: list[str] = []
    confidence: float | None = None
    async for step in happenings:
        match step:
            case TurnStarted(turn):
                words.clear()
                if turn == profile.max_turns:
                    tab.note_limit(turns_reached(turn, mode=profile.title))
                yield StatusUpdate("model", "Thinking" if turn == 1 else "Reading the results")
            case TurnEnded(turn, usage, card=card):
                tab.note_turn(turn, card=card, usage=usage)  # by our name: a vendor's own may be a dated one
            case Closed(given):
                confidence = given
            case ContentChunk(text=text):
                words.append(text)
                tab.timings.note_text()
                yield step
            case ContentReplaced(text=text):
                words[:] = [text]
                yield step
            case CallDone(event):
                tab.note_call(event)
                yield step
            case _:
                yield step
    yield Answered("".join(words), tuple(sources.cited), named=sources.named, confidence=confidence)


async def _past(run: Run, profile: Profile, history: tuple[Said, ...]) -> Recalled:
    if history:
        return given_past(history, window=profile.window)
    return await in_database(recall, run, profile) if run.parent_id else Recalled()


def offered(tools: Mapping[str, Tool], profile: Profile, *, has_tools: bool = True) -> dict[str, Tool]:
    """The tools that are for this mode; where the person wants none, those it cannot do without."""
    return {
        name: tool
        for name, tool in tools.items()
        if name in profile.duties or (has_tools and name not in profile.without)
    }
