"""Histories: sessions between a persona and an assistant, and the filter over them.

    plan = plan_sessions(persona_id, openers, seed)
    attempt = await simulator.simulate(portrait, session, attempt=0)
    history = await Filter(...).history(portrait, sessions)

Two forms: two agents turn by turn (default), or one call that writes the whole dialogue. The
filter checks each session against the norms of the culture, simulates a rejected one again, and
notes which norms the accepted sessions show.
"""

from habitus.histories.filtering import FilterRules, SessionFilter, decide, make_history
from habitus.histories.lexical import Lexicon, load_lexicon
from habitus.histories.sessions import OpenerPool, SessionPlan, plan_sessions
from habitus.histories.simulation import AgentSimulator, Simulator, SingleCallSimulator
from habitus.histories.verifier import Verifier

__all__ = [
    "AgentSimulator",
    "FilterRules",
    "Lexicon",
    "OpenerPool",
    "SessionFilter",
    "SessionPlan",
    "Simulator",
    "SingleCallSimulator",
    "Verifier",
    "decide",
    "load_lexicon",
    "make_history",
    "plan_sessions",
]
