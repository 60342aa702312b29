"""Models answer the posts of a corpus: one response for each post and target.

A target sees the title, the body and the name of the subreddit, and no persona. What comes out is
a run of items that ``habitus judge`` labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from habitus.content import Prompt, find, read_prompt
from habitus.corpora import question_of
from habitus.labelling.note import ITEMS, AnswersConfig, Labelling, capped, keep_labelling
from habitus.labelling.posts import PostSource
from habitus.models import Caps, ChatModel, ModelEntry
from habitus.records import JudgedItem, Outcome, Request, Sampling, derive_seed, rubric_first
from habitus.running import ALIKE, MODELS_MAY_CHANGE, Session, together, windowed
from habitus.store import RunDir

AnswerPrompt = Prompt
CUT = "cut"  # the field that says whether an answer was cut
SEEN = frozenset({"title", "body", "subreddit"})


def find_answer_prompt(name: str = "answer", workspace: Path | None = None) -> AnswerPrompt:
    """The prompt of an id in ``experiments/corpora/`` (workspace first), or of a path.

    Raises:
        ContentError: a placeholder other than title, body and subreddit, or one missing.
    """
    path = (
        Path(name) if name.endswith(".md") else find("experiments", f"corpora/{name}.md", workspace)
    )
    return read_prompt(path, SEEN)


@dataclass(frozen=True)
class AnsweringJob:
    """Targets over posts.

    Args:
        posts: the posts.
        prompt: what a target sees; title, body and subreddit.
        models: the targets by name.
        sampling: how answers are drawn.
        keep_cut: whether an answer that was cut at its token limit is an answer; it is marked in
            the field ``cut``.
        seed: what the seeds of all calls are derived from.
        limit: the first posts only.
        caps: the most that the run may spend.
    """

    posts: PostSource
    prompt: AnswerPrompt
    models: Mapping[str, ModelEntry]
    sampling: Sampling
    seed: int = 0
    limit: int | None = None
    keep_cut: bool = True
    caps: Caps = field(default_factory=Caps)

    may_change = MODELS_MAY_CHANGE
    alike = ALIKE

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """What answers depend on: posts, prompt, targets, sampling, seed."""
        return {
            "kind": "answers",
            "posts": self.posts.digest,
            "prompt": [list(part) for part in self.prompt.parts],
            "seed": self.seed,
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "max_tokens": self.sampling.max_tokens,
            "keep_cut": self.keep_cut,
            "models": {name: e.model_dump(mode="json") for name, e in self.models.items()},
            **capped(self.caps),
        }

    @property
    def kept(self) -> type[AnswersConfig]:
        """What the configuration is as it is read back."""
        return AnswersConfig

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Seed and origin."""
        return {"seed": self.seed, "origin": self.posts.path.name}

    @property
    def totals(self) -> Mapping[str, int]:
        """How many records each table will have."""
        posts = min(self.posts.size, self.limit or self.posts.size)
        return {ITEMS: posts * len(self.models)}

    @property
    def calls(self) -> int:
        """How many calls that takes."""
        return self.totals[ITEMS]

    def begin(self, run: RunDir) -> None:
        """Keep what the items are."""
        totals = dict(self.totals)
        keep_labelling(run, Labelling(origin=self.posts.path.name, kind="posts", totals=totals))

    async def work(self, session: Session) -> None:
        """All targets side by side, each over the posts in their order."""
        await together(self.models, partial(self._target, session))

    def leave(self, run: RunDir) -> None:
        """Nothing follows from answers until they are judged."""

    def asked(self) -> Mapping[str, Any]:
        """How many posts."""
        return {"limit": self.limit}

    def covered_by(self, asked: Mapping[str, Any]) -> bool:
        """Whether as many were asked for before."""
        most = asked["limit"]
        return most is None or (self.limit is not None and self.limit <= most)

    async def _target(self, session: Session, name: str) -> None:
        async def answer(post: dict[str, Any]) -> None:
            await session.put(ITEMS, await self._answer(name, session.models[name], post))

        await windowed(self._posts(), answer, 2 * self.models[name].concurrency)

    def _posts(self) -> Iterator[dict[str, Any]]:
        for number, post in enumerate(self.posts.posts()):
            if self.limit is not None and number >= self.limit:
                return
            yield post

    async def _answer(self, target: str, model: ChatModel, post: dict[str, Any]) -> JudgedItem:
        name = f"{post['id']}/{target}"
        prefix, messages = rubric_first(self.prompt.fill({key: post[key] for key in SEEN}))
        reply = await model.complete(
            Request(
                messages=messages,
                prefix=prefix,
                sampling=self.sampling,
                seed=derive_seed(self.seed, "answer", name),
                stage="answers",
                record=name,
                context={"role": "target", "target": target, "post": post["id"]},
            )
        )
        cut = reply.outcome is Outcome.TRUNCATED and bool(reply.text.strip())
        taken = reply.ok or (cut and self.keep_cut)
        return JudgedItem(
            id=name,
            outcome=Outcome.OK if taken else reply.outcome,
            reason="" if taken else reply.reason,
            group=post["id"],
            target=target,
            question=question_of(post["title"], post["body"]),
            response=reply.text,
            fields={**self.posts.fields(post), CUT: "yes" if cut else "no"},
        )
