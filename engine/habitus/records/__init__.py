"""The records everything else passes around: messages and calls, sessions, responses, verdicts.

Hot records (messages, requests, replies) are frozen dataclasses; records that are stored by
stage are pydantic models and serialise to the same bytes wherever they were made. Nothing here
does any work of its own.
"""

from habitus.records.calls import (
    Failure,
    Outcome,
    Reply,
    Request,
    Sampling,
    Schema,
    Usage,
    call_key,
)
from habitus.records.messages import Message, Prefix, messages, rubric_first
from habitus.records.seeds import derive_seed, generator
from habitus.records.stages import (
    TABLES,
    Attempt,
    Evaluation,
    History,
    JudgedItem,
    Label,
    NormCheck,
    NormState,
    Recommendation,
    Response,
    SafetyLabel,
    SessionCheck,
    SessionRef,
    StageRecord,
    Turn,
    Verdict,
)

__all__ = [
    "TABLES",
    "Attempt",
    "Evaluation",
    "Failure",
    "History",
    "JudgedItem",
    "Label",
    "Message",
    "NormCheck",
    "NormState",
    "Outcome",
    "Prefix",
    "Recommendation",
    "Reply",
    "Request",
    "Response",
    "SafetyLabel",
    "Sampling",
    "Schema",
    "SessionCheck",
    "SessionRef",
    "StageRecord",
    "Turn",
    "Usage",
    "Verdict",
    "call_key",
    "derive_seed",
    "generator",
    "messages",
    "rubric_first",
]
