"""Models: the one seam ``ChatModel``, its backends, scheduling, retries, and the call log.

    opening = Opening(base=folder)
    model = Recorded(open_model(name, entry, opening), entry.identity(name), log)
    reply = await model.complete(Request(messages=(Message("user", "Hello"),)))

Backends are imported when a model is opened; nothing here knows what is asked or why.
"""

from habitus.models.entry import ModelEntry, Opening, Price, open_model, read_entry
from habitus.models.model import CallLog, ChatModel
from habitus.models.quirks import Quirks
from habitus.models.recorded import Counters, Recorded
from habitus.models.spending import Budget, Caps, NotAskedError

__all__ = [
    "Budget",
    "CallLog",
    "Caps",
    "ChatModel",
    "Counters",
    "ModelEntry",
    "NotAskedError",
    "Opening",
    "Price",
    "Quirks",
    "Recorded",
    "open_model",
    "read_entry",
]
