"""Models: the one seam ``ChatModel``, its backends, scheduling, retries, and the call log."""

from habitus.models.model import CallLog, ChatModel

__all__ = ["CallLog", "ChatModel"]
