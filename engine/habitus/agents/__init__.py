"""Agents: one side of a conversation, two sides talking, and answers with a fixed shape.

    agent = Agent("persona", model, system=prefix, sampling=Sampling(temperature=0.7))
    dialogue = await Conversation(persona, assistant, rules).run(opener, label)
    answer = await ask(model, request, ItemReader(schema, ids))

The package does not know what a culture, a norm or an experiment is.
"""

from habitus.agents.agent import Agent
from habitus.agents.conversation import Conversation, Dialogue, Rules
from habitus.agents.endings import SIDES, Goodbyes, load_goodbyes
from habitus.agents.fields import FieldReader, VerdictsReader, verdicts_schema
from habitus.agents.jsontext import Decoded, decode_json
from habitus.agents.marks import LabelList, plain_label
from habitus.agents.structured import Answer, ItemReader, Items, ObjectReader, Reading, ask
from habitus.agents.verdicts import (
    END_TOKEN,
    LabelPlace,
    SentinelReader,
    Verdict,
    unreadable_label,
)

__all__ = [
    "END_TOKEN",
    "SIDES",
    "Agent",
    "Answer",
    "Conversation",
    "Decoded",
    "Dialogue",
    "FieldReader",
    "Goodbyes",
    "ItemReader",
    "Items",
    "LabelList",
    "LabelPlace",
    "ObjectReader",
    "Reading",
    "Rules",
    "SentinelReader",
    "Verdict",
    "VerdictsReader",
    "ask",
    "decode_json",
    "load_goodbyes",
    "plain_label",
    "unreadable_label",
    "verdicts_schema",
]
