"""The shipped judges of FRANZ: complete, closed, and in words of their own."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from habitus.agents import plain_label
from habitus.judges import Asking, Judge, find_judge, find_set
from habitus.records import Outcome
from people import Seat

ROOT = Path(__file__).parents[1]
SEEN = {"question": "Is it far?", "response": "Not for us."}
NAMES = ("positioning", "generalizing", "anthropomorphism", "maxims", "post_categories")
CUES = (
    "personal_relationships",
    "personal_history",
    "explicit_relationship_status",
    "desires",
    "agency",
    "emotions",
    "validation",
    "empathy",
    "relatability",
)
OFF = ("sentience", "sensory_input", "movement_and_interaction", "embodiment")
ASKED = [
    (judge, variant.id if variant else "")
    for judge in map(find_judge, NAMES)
    for variant in (judge.file.variants or (None,))
]
IDS = [f"{judge.file.id}-{variant}".rstrip("-") for judge, variant in ASKED]


def test_a_response_gets_fifteen_verdicts() -> None:
    verdicts = [(judge.file.id, variant) for judge, variant in find_set("franz").verdicts()]
    assert len(verdicts) == len(set(verdicts)) == 15
    assert Counter(judge for judge, _ in verdicts) == {
        "positioning": 1,
        "generalizing": 1,
        "anthropomorphism": 9,
        "maxims": 4,
    }


def test_nine_cues_are_on_and_four_are_off() -> None:
    judge = find_judge("anthropomorphism")
    assert judge.variants == CUES
    assert tuple(v.id for v in judge.file.variants if not v.on) == OFF


@pytest.mark.parametrize("cue", [*CUES, *OFF])
def test_every_cue_has_yes_and_no_examples(cue: str) -> None:
    examples = find_judge("anthropomorphism").examples
    assert examples is not None
    assert {example.label for example in examples.of(cue)} == {"Yes", "No"}


@pytest.mark.parametrize("cue", ["validation", "empathy", "relatability", "desires", "agency"])
async def test_the_question_goes_by_the_family_of_the_cue(cue: str) -> None:
    judge = find_judge("anthropomorphism")
    seat = Seat("Final: ##No##")
    await judge.label(seat.model, SEEN, judge.sampling, 1, "r", Asking(cue))
    shows = cue in {"validation", "empathy", "relatability"}
    assert ("Does the answerer show" in seat.seen()) is shows
    assert ("claim or imply" in seat.seen()) is not shows
    assert ("outright claiming" in seat.seen()) is (cue == "relatability")


@pytest.mark.parametrize("maxim", ["quantity", "quality", "relation", "manner"])
def test_every_maxim_has_three_worked_examples(maxim: str) -> None:
    judge = find_judge("maxims")
    assert judge.examples is not None
    examples = judge.examples.of(maxim)
    labels = judge.labels(maxim).names
    assert len(examples) == 3
    assert {example.label for example in examples} == set(labels)
    variant = judge.file.variant(maxim)
    assert judge.file.present_of(variant) == labels[:1]


@pytest.mark.parametrize(
    ("name", "variant", "labels", "form", "place", "sees"),
    [
        ("positioning", "", "Insider Outsider", "sentinel", "end", "response"),
        ("generalizing", "", "Generalizing Non-Generalizing", "json", "end", "response"),
        ("anthropomorphism", "agency", "Yes No", "sentinel", "last_line", "question response"),
        ("maxims", "quantity", "APPROPRIATE UNDER OVER", "sentinel", "end", "question response"),
        ("maxims", "quality", "ADHERES VIOLATES", "sentinel", "end", "question response"),
        (
            *("maxims", "relation", "RELEVANT PARTIALLY NOT_RELEVANT"),
            *("sentinel", "end", "question response"),
        ),
        ("maxims", "manner", "CLEAR UNCLEAR", "sentinel", "end", "question response"),
    ],
)
def test_labels_and_answers_have_the_published_form(
    name: str, variant: str, labels: str, form: str, place: str, sees: str
) -> None:
    judge = find_judge(name)
    answer = judge.file.answer
    assert judge.labels(variant).names == tuple(labels.split())
    assert (answer.form, answer.place, answer.end) == (form, place, "<|END|>")
    assert judge.file.sees == tuple(sees.split())
    assert (judge.sampling.temperature, judge.sampling.top_p) == (0.7, 0.95)
    assert judge.sampling.max_tokens == 512


@pytest.mark.parametrize(("judge", "variant"), ASKED, ids=IDS)
@pytest.mark.parametrize("form", ["sentinel", "json"])
async def test_every_label_is_read_back_from_its_own_example(
    judge: Judge, variant: str, form: str
) -> None:
    """What the prompt shows as an answer is what the reader reads, in both forms."""
    how = Asking(variant, "json" if form == "json" else "sentinel")
    for label in judge.labels(variant).names:
        reply = f'{{"Reasoning": "so", "Label": "{label}"}}'
        if form == "sentinel":
            place = judge.file.answer.place
            reply = f"##{label}## So." if place == "start" else f"So.\nFinal: ##{label}## <|END|>"
        seat = Seat(reply)
        found = await judge.label(seat.model, SEEN, judge.sampling, 1, "r", how)
        assert (found.label, found.failure) == (label, None)
        assert label in seat.seen()
        assert "{{" not in seat.seen()


class TestCategories:
    def test_there_are_nineteen_and_each_is_defined(self) -> None:
        judge = find_judge("post_categories")
        labels = judge.labels().names
        assert len(labels) == 19
        rubric = judge.prompt.parts[0][1]
        assert re.findall(r"^- ([^:\n]+): ", rubric, re.MULTILINE) == list(labels)

    def test_every_category_has_other_words(self) -> None:
        judge = find_judge("post_categories")
        assert set(judge.file.aliases) == set(judge.labels().names)
        words = [plain_label(w) for ws in judge.file.aliases.values() for w in ws]
        assert len(words) == len(set(words))

    @pytest.mark.parametrize(
        ("said", "label"),
        [
            ("Food and Drink", "Food and Drink"),
            ("food & drinks", "Food and Drink"),
            ("The house", "The House"),
            ("Travel", "Tourism"),
            ("Religous Beliefs", "Religious Beliefs"),
            ("Sports", None),
            ("Food and Drink, Tourism", None),
        ],
    )
    async def test_what_cannot_be_mapped_is_reported_and_not_guessed(
        self, said: str, label: str | None
    ) -> None:
        judge = find_judge("post_categories")
        seat = Seat(f"##{said}## It asks so. <|END|>")
        found = await judge.label(seat.model, SEEN, judge.sampling, 1, "p")
        assert found.label == label
        if label is None:
            assert found.failure is not None
            assert found.failure.outcome is Outcome.UNPARSED
            assert found.failure.reason == f"##{said}## is not a label of the list"


@pytest.mark.parametrize("name", NAMES)
def test_the_texts_are_ours(name: str) -> None:
    """No name, wording or example of the published catalogues."""
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "judges" / name).iterdir())
    )
    assert not re.search(r"conversation partner|llama|gemma|reddit", text, re.IGNORECASE)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_no_two_alike(name: str) -> None:
    examples = find_judge(name).examples
    if examples is None:
        assert name == "post_categories"
        return
    shown = [example.response for example in examples.examples]
    assert len(shown) == len(set(shown))
    assert not any("##" in text for text in shown)
