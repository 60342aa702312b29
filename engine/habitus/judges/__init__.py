"""Judges: what labels an answer, as content.

    judge = find_judge("anthropomorphism")
    found = await judge.label(model, seen, judge.sampling, seed, record, Asking("emotions"))
    all_of_them = await judge.label_all(model, seen, judge.sampling, seed, record)
    find_set("franz").verdicts()          # judge and variant of every verdict on a response

A judge is a file: what it sees, its rubric, its closed list of labels and which of them count as
present. The package does not know which study a judge belongs to.
"""

from habitus.judges.asking import Asking, AskingAll, Labelled
from habitus.judges.examples import ExamplesFile, load_examples
from habitus.judges.judge import Judge, find_judge, load_judge
from habitus.judges.judgefile import Form, JudgeFile, VariantFile
from habitus.judges.judgeset import JudgeSet, JudgeSetFile, choose, find_set, load_set

__all__ = [
    "Asking",
    "AskingAll",
    "ExamplesFile",
    "Form",
    "Judge",
    "JudgeFile",
    "JudgeSet",
    "JudgeSetFile",
    "Labelled",
    "VariantFile",
    "choose",
    "find_judge",
    "find_set",
    "load_examples",
    "load_judge",
    "load_set",
]
