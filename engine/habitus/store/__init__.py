"""The store: a run directory with a durable log of calls and the records of each stage.

See ``rundir`` for how it is used and what the directory holds, ``database`` for the tables,
``journal`` for how calls are packed, ``writer`` for when an answer is durable.
"""

from habitus.store.calls import CallCount, CallStore
from habitus.store.canonical import Change, allowed, canonical, changes, digest
from habitus.store.files import write_whole
from habitus.store.rows import StoredCall
from habitus.store.rundir import RunDir, is_run
from habitus.store.stages import RecordStore
from habitus.store.verification import Verification

__all__ = [
    "CallCount",
    "CallStore",
    "Change",
    "RecordStore",
    "RunDir",
    "StoredCall",
    "Verification",
    "allowed",
    "canonical",
    "changes",
    "digest",
    "is_run",
    "write_whole",
]
