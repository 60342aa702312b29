"""How to cite: the software and the papers whose methods a run uses, as ``CITATION.cff`` has them."""

from __future__ import annotations

from dataclasses import dataclass

import habitus


@dataclass(frozen=True, slots=True)
class Work:
    """Something to cite, with what it is cited for, and a BibTeX entry."""

    what: str
    text: str
    bibtex: str
    url: str = ""


SOFTWARE = Work(
    "the engine",
    "The Habitus authors. Habitus: a simulation engine for persona-conversation benchmarks. "
    f"Version {habitus.__version__}.",
    "@software{habitus,\n  author = {{The Habitus authors}},\n"
    "  title = {Habitus: a simulation engine for persona-conversation benchmarks},\n"
    f"  version = {{{habitus.__version__}}}\n}}",
)
CCBENCH = Work(
    "the benchmark of implicitly signalled norms (CCBench)",
    "Assessing LLM Cultural Competence via Implicitly Signaled Norms using Health Queries. "
    "arXiv:2607.05405, 2026.",
    "@misc{ccbench,\n  title = {Assessing {LLM} Cultural Competence via Implicitly Signaled Norms "
    "using Health Queries},\n  year = {2026},\n  eprint = {2607.05405},\n"
    "  archiveprefix = {arXiv}\n}",
    "https://arxiv.org/abs/2607.05405",
)
FRANZ = Work(
    "the framework of answer framing (FRANZ)",
    "Not What, But How: A Framework for Auditing LLM Responses across Positioning, "
    "Generalization, Anthropomorphism, and Maxims. 2026.",
    "@misc{franz,\n  title = {Not What, But How: A Framework for Auditing {LLM} Responses across "
    "Positioning, Generalization, Anthropomorphism, and Maxims},\n  year = {2026}\n}",
)


def works(*, ccbench: bool, franz: bool) -> list[Work]:
    """What a report asks its readers to cite."""
    return [SOFTWARE, *([CCBENCH] if ccbench else []), *([FRANZ] if franz else [])]
