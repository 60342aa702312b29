"""Agents: one side of a conversation, two sides talking, and answers with a fixed shape.

    agent = Agent("persona", model, system=prefix, sampling=Sampling(temperature=0.7))
    dialogue = await Conversation(persona, assistant, rules).run(opener, label)
    answer = await ask(model, request, ItemReader(schema, ids))

The package does not know what a culture, a norm or an experiment is.
"""

from habitus.agents.agent import Agent
from habitus.agents.conversation import Conversation, Dialogue, Rules
from habitus.agents.jsontext import Decoded, decode_json
from habitus.agents.structured import Answer, ItemReader, Items, ObjectReader, Reading, ask

__all__ = [
    "Agent",
    "Answer",
    "Conversation",
    "Decoded",
    "Dialogue",
    "ItemReader",
    "Items",
    "ObjectReader",
    "Reading",
    "Rules",
    "ask",
    "decode_json",
]
