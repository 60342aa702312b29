"""A study: an experiment with everything it refers to, read and checked.

A study holds the cultures, personas, queries, openers, settings, prompts and judges of an
experiment, and the hash of every file they came from: a run goes on only over the same content.
``resolving`` makes one from a file; this module does not know files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from habitus.agents import Goodbyes
from habitus.checklists import Query, QuerySet
from habitus.content import Prompt
from habitus.experiments.config import Experiment
from habitus.experiments.settings import Setting
from habitus.histories import Lexicon, OpenerPool
from habitus.judges import Judge
from habitus.models import Caps
from habitus.norms import Culture
from habitus.personas import Persona, sheet, states
from habitus.personas.portrait import Portrait
from habitus.personas.sheets import labels


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of the helping roles."""

    persona: Prompt
    assistant: Prompt
    dialogue: Prompt
    verifier: Prompt
    recommend: Prompt
    evaluate: Prompt


@dataclass(frozen=True)
class Study:
    """An experiment with all it refers to.

    ``files`` maps the name of each content file to its hash.
    """

    experiment: Experiment
    cultures: Mapping[str, Culture]
    personas: Sequence[Persona]
    query_set: QuerySet
    queries: Sequence[Query]
    pools: Sequence[OpenerPool]
    settings: Sequence[Setting]
    prompts: Prompts
    lexicon: Lexicon
    goodbyes: Goodbyes
    safety: Judge | None
    files: Mapping[str, str] = field(default_factory=dict)

    def limited(self, caps: Caps) -> Study:
        """The same study with other caps on what it may spend."""
        limits = self.experiment.limits.model_copy(update=dict(caps))
        return replace(self, experiment=self.experiment.model_copy(update={"limits": limits}))

    @cached_property
    def portraits(self) -> tuple[Portrait, ...]:
        """What the stages need of each persona, in the order of the population."""
        return tuple(self._portrait(persona) for persona in self.personas)

    @cached_property
    def norms_text(self) -> dict[str, str]:
        """For each persona the text of the setting that spells its norms out."""
        included = self.experiment.neutral_norms == "include"
        return {
            p.id: "\n".join(
                sheet(
                    p,
                    self.cultures[p.culture],
                    neutral="listed" if included else "omit",
                    norms=self._in_play(p.culture),
                    label="none",
                    wording="full",
                )
            )
            for p in self.personas
        }

    def _portrait(self, persona: Persona) -> Portrait:
        culture = self.cultures[persona.culture]
        in_play = self._in_play(culture.culture)
        label_of = {norm: label for label, norm in labels(culture).items()}
        chosen = [norm for norm in culture.norms if norm.id in in_play]
        state = states(persona, culture)
        lines = sheet(persona, culture, neutral=self.experiment.history.neutral, norms=in_play)
        return Portrait(
            id=persona.id,
            culture=culture.culture,
            states={norm.id: state[norm.id] for norm in chosen},
            statements={norm.id: norm.statement for norm in chosen},
            labels={norm.id: label_of[norm.id] for norm in chosen},
            sheet="\n".join(lines),
        )

    def _in_play(self, culture: str) -> tuple[str, ...]:
        every = tuple(norm.id for norm in self.cultures[culture].norms)
        return self.experiment.norms.get(culture) or every
