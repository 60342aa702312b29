"""Judges: what labels an answer, as content.

    judge = find_judge("safety")
    label = await judge_response(judge, model, ...)

A judge is a file: what it sees, its rubric, its closed list of labels and which of them count as
present. The package does not know which study a judge belongs to.
"""

from habitus.judges.judge import Judge, JudgeFile, Labelled, find_judge, load_judge

__all__ = ["Judge", "JudgeFile", "Labelled", "find_judge", "load_judge"]
