"""Labelling: judges over questions and answers, from a file or a run to a run of labels.

    source = open_source(Path("answers.jsonl"), columns={})
    job = LabellingJob(source, tasks, models={"small": entry}, seed=1)
    summary = run_job(job, JobRequest(out=Path("runs/labels")))

A run of labels holds the items that were judged and one label for each item, judge and variant.
Work goes judge by judge: all items share the judge's rubric, so that a server with a prefix cache
reads it once. Models can also be asked to answer the posts of a corpus, which makes items. The
package does not know what labels are counted for.
"""

from habitus.labelling.answering import AnsweringJob, AnswerPrompt, find_answer_prompt
from habitus.labelling.counts import AnswerCount, LabelCount, count_answers, count_labels
from habitus.labelling.job import LabellingJob
from habitus.labelling.note import Labelling, VerdictNote, read_labelling, refuse_later
from habitus.labelling.outcomes import label_outcomes
from habitus.labelling.posts import Categories, PostSource, write_categories
from habitus.labelling.source import Columns, Source
from habitus.labelling.sources import open_source
from habitus.labelling.tasks import Manner, Task, make_tasks

__all__ = [
    "AnswerCount",
    "AnswerPrompt",
    "AnsweringJob",
    "Categories",
    "Columns",
    "LabelCount",
    "Labelling",
    "LabellingJob",
    "Manner",
    "PostSource",
    "Source",
    "Task",
    "VerdictNote",
    "count_answers",
    "count_labels",
    "find_answer_prompt",
    "label_outcomes",
    "make_tasks",
    "open_source",
    "read_labelling",
    "refuse_later",
    "write_categories",
]
