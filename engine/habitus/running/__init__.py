"""Running a job: a run directory, opened models, work, and what is left behind.

    summary = run_job(job, JobRequest(out=Path("runs/demo")), observer)

A job says what it is held to, which models it asks and what it does with them; a session of it
opens the models and the run, goes on where an earlier session stopped, and leaves records that are
written out. The package knows neither experiments nor judges: they are jobs.
"""

from habitus.running.account import caps_in, open_budget
from habitus.running.job import (
    ALIKE,
    MODELS_MAY_CHANGE,
    Job,
    JobRequest,
    Observer,
    RunStoppedError,
    RunSummary,
    Silent,
)
from habitus.running.learning import read_learned
from habitus.running.madeup import read_made_up
from habitus.running.ordering import gathered, pilot_first, together, windowed
from habitus.running.session import DONE, Session, run_job
from habitus.running.versions import refuse_unknown, versions

__all__ = [
    "ALIKE",
    "DONE",
    "MODELS_MAY_CHANGE",
    "Job",
    "JobRequest",
    "Observer",
    "RunStoppedError",
    "RunSummary",
    "Session",
    "Silent",
    "caps_in",
    "gathered",
    "open_budget",
    "pilot_first",
    "read_learned",
    "read_made_up",
    "refuse_unknown",
    "run_job",
    "together",
    "versions",
    "windowed",
]
