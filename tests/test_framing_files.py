"""Analysis files, and what of a run of labels they read."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framing_fixture import franz_labels, franz_verdicts, items_of, label, label_run, rules
from habitus.content import shipped_root
from habitus.errors import ContentError, NotFoundError, StoreError, UsageError
from habitus.framing import (
    MISSING,
    NOT_ASKED,
    analyse,
    default_analysis,
    find_analysis,
    load_analysis,
    read_labels,
)
from habitus.framing.reading import Labels
from habitus.records import JudgedItem, Label, Outcome
from habitus.store import RunDir

PLAIN = """\
id: own
title: "Own"
characteristics:
  - {id: insider, name: "Insider", judge: positioning}
questions:
  - {id: how-often, title: "How often", prevalence: [insider]}
"""


def written(tmp_path: Path, text: str, name: str = "own") -> Path:
    path = tmp_path / "experiments" / "analyses" / f"{name}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


class TestAFile:
    def test_needs_little(self, tmp_path: Path) -> None:
        analysis = load_analysis(written(tmp_path, PLAIN))
        assert analysis.compare.level == "target"
        assert (analysis.significance, analysis.threshold.cases) == (0.05, 10)
        gee = analysis.gee
        assert (gee.correlation, gee.covariance) == ("exchangeable", "bias_reduced")
        assert gee.distribution == "student"
        assert (analysis.fdr.family, analysis.threshold.rows) == ("fit", "subset")

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("id: own", "id: other", ":1:5: the id is 'other', but the file is called own.yaml"),
            ("judge: positioning", "judge: posing", ":4:43: no file in judges/ called"),
            (
                "judge: positioning",
                "judge: maxims",
                ":4:5: missing key 'variant' (variants: quantity, quality, relation, manner)",
            ),
            (
                "judge: positioning",
                "judge: maxims, variant: wit",
                ":4:60: 'wit' is no variant (variants: quantity",
            ),
            (
                "judge: positioning",
                "judge: positioning, variant: wit",
                ":4:65: the judge 'positioning' has no variants (leave it out)",
            ),
            (
                "judge: positioning",
                "judge: positioning, labels: [Inside]",
                ":4:65: 'Inside' is no label of the judge (labels: Insider, Outsider)",
            ),
            (
                "judge: positioning",
                "labels: [x]",
                ":4:5: a characteristic has a 'judge' or a 'field'",
            ),
            ("judge: positioning", "field: topic", ":4:5: missing key 'labels'"),
            ("prevalence: [insider]", "prevalence: [inside]", ":6:54: no characteristic called"),
            ("prevalence: [insider]", "prevalence: []", ":6:5: the question asks nothing"),
            (
                "prevalence: [insider]",
                "pairs: [{causes: [insider], effects: [wit]}]",
                ":6:79: no characteristic called 'wit'",
            ),
            (
                "prevalence: [insider]",
                "prevalence: [insider], compare: {level: state}",
                ":6:73: items have no field 'state' (write 'rows: norm')",
            ),
            (
                "questions:",
                "compare: {subsets: {by: [country], top: {field: category}}}\nquestions:",
                ":5:49: subsets are not made by 'category' (add 'category' to 'by')",
            ),
            (
                "questions:",
                "compare: {subsets: {by: [target]}}\nquestions:",
                ":5:25: 'target' is what is compared (leave it out)",
            ),
            (
                "questions:",
                "compare: {names: {a: X, b: X}}\nquestions:",
                ":5:22: two values have the short name 'X'",
            ),
            (
                'title: "Own"',
                'title: "Own"\ngee: {correlation: ar1}',
                ":3:20: gee.correlation: Input",
            ),
            ('title: "Own"', 'title: "Own"\nlevel: target', ":3:1: unknown key 'level'"),
        ],
    )
    def test_with_a_fault_is_told_where(
        self, old: str, new: str, message: str, tmp_path: Path
    ) -> None:
        path = written(tmp_path, PLAIN.replace(old, new))
        with pytest.raises(ContentError) as found:
            load_analysis(path)
        assert f"{path}{message}" in str(found.value)

    def test_that_is_not_there_is_told_with_the_nearest(self) -> None:
        with pytest.raises(NotFoundError, match="did you mean 'franz'"):
            find_analysis("frans")

    def test_of_norms_needs_rows_of_norms(self, tmp_path: Path) -> None:
        met = '  - {id: met, name: "Met", field: met, labels: ["yes"]}\nquestions:'
        text = PLAIN.replace("questions:", met).replace("[insider]", "[met]")
        with pytest.raises(ContentError, match="items have no field 'met'"):
            load_analysis(written(tmp_path, text))
        more = "prevalence: [met], compare: {rows: norm}"
        path = tmp_path / "own.yaml"
        path.write_text(text.replace("prevalence: [met]", more), encoding="utf-8")
        assert load_analysis(path).questions[0].compare is not None


def test_the_shipped_analysis_of_franz_is_that_of_the_paper() -> None:
    analysis = find_analysis("franz", shipped_root())
    first, second, third = analysis.questions
    assert len(first.prevalence) == 11
    assert len(first.prevalence) + len(third.prevalence) == 15
    cues = ("emotions", "validation", "empathy")
    ahead = [("insider", "generalizing"), *(("insider", cue) for cue in cues)]
    ahead += [("generalizing", cue) for cue in cues]
    assert set(second.each_pair()) == {*ahead, *((e, c) for c, e in ahead)}
    assert len(third.each_pair()) == 4 * 11
    top = analysis.compare.subsets.top
    assert top is not None
    assert (top.field, top.n, top.within) == ("category", 3, "country")
    assert analysis.compare.reference == "llama"
    violated = {c.id for c in analysis.characteristics if c.violates}
    assert violated == set(third.prevalence)


def test_the_shipped_analysis_of_any_answers_asks_what_franz_asks() -> None:
    franz, answers = (find_analysis(name, shipped_root()) for name in ("franz", "answers"))
    assert answers.compare.subsets.by == ()
    asked = {"id", "title", "compare"}
    assert answers.model_dump(exclude=asked) == franz.model_dump(exclude=asked)


def read(path: Path, analysis: Any = None) -> Labels:
    with RunDir.open(path, write=False) as run:
        return read_labels(run, analysis or rules())


class TestReading:
    def test_codes_labels_as_the_judge_counts_them(self, tmp_path: Path) -> None:
        items = items_of(2)
        labels = [
            label(items[0], "positioning", label="Insider", present=True),
            label(items[1], "positioning", label="outsider", present=False),
            label(items[2], "positioning", outcome=Outcome.UNPARSED, reason="two labels"),
        ]
        found = read(label_run(tmp_path / "run", items, labels))
        assert list(found.frames["item"].labels["ins"]) == [1, 0, MISSING, *[NOT_ASKED] * 3]
        assert str(found.codings["ins"]) == "1 = Insider; 0 = Outsider"

    @pytest.mark.parametrize(
        ("rule", "expected", "told"),
        [
            pytest.param({}, [1, 0, 0], "1 = APPROPRIATE; 0 = UNDER, OVER", id="adheres"),
            pytest.param(
                {"violates": True}, [0, 1, 1], "1 = UNDER, OVER; 0 = APPROPRIATE", id="violates"
            ),
            pytest.param(
                {"labels": ["over"]}, [0, 0, 1], "1 = OVER; 0 = APPROPRIATE, UNDER", id="one kind"
            ),
        ],
    )
    def test_how_three_labels_become_two_is_a_switch(
        self, rule: dict[str, Any], expected: list[int], told: str, tmp_path: Path
    ) -> None:
        items = items_of(1)
        labels = [
            label(item, "maxims", "quantity", label=name, present=name == "APPROPRIATE")
            for item, name in zip(items, ("APPROPRIATE", "UNDER", "OVER"), strict=True)
        ]
        what = {"id": "ins", "name": "Quantity", "judge": "maxims", "variant": "quantity"}
        analysis = rules(
            characteristics=[what | rule],
            questions=[{"id": "q", "title": "Q", "prevalence": ["ins"]}],
        )
        found = read(label_run(tmp_path / "run", items, labels), analysis)
        assert list(found.frames["item"].labels["ins"]) == expected
        assert str(found.codings["ins"]) == told

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            pytest.param({"label": "Neither"}, "the judge's labels are", id="of no list"),
            pytest.param({"present": False}, "says present: False", id="contradicts its list"),
            pytest.param({"item": "p9/llama"}, "that is not there", id="of no item"),
            pytest.param({"id": "x"}, "is not called 'p0000/gemma/positioning'", id="id"),
            pytest.param(
                {"outcome": Outcome.UNPARSED}, "is unparsed and says 'Insider'", id="failed"
            ),
            pytest.param({"label": None}, "is ok and says None", id="ok without a label"),
        ],
    )
    def test_a_label_that_cannot_be_is_refused(
        self, wrong: dict[str, Any], message: str, tmp_path: Path
    ) -> None:
        items = items_of(2)
        good = label(items[0], "positioning", label="Insider", present=True)
        run = label_run(tmp_path / "run", items, [good.model_copy(update=wrong)])
        with pytest.raises(StoreError, match=message):
            read(run)

    def test_a_label_of_an_answer_that_is_not_there_is_refused(self, tmp_path: Path) -> None:
        items = items_of(1)
        items[0] = items[0].model_copy(update={"outcome": Outcome.TRUNCATED})
        one = label(items[0], "positioning", label="Insider", present=True)
        with pytest.raises(StoreError, match="is of an item that has no answer"):
            read(label_run(tmp_path / "run", items, [one]))

    def test_an_item_has_one_label_of_a_judge(self, tmp_path: Path) -> None:
        """Two labels of one judge have one id; a second under another id is refused."""
        items = items_of(1)
        good = label(items[0], "positioning", label="Insider", present=True)
        other = good.model_copy(update={"id": f"{good.id}.", "label": "Outsider"})
        with pytest.raises(StoreError, match="is not called"):
            read(label_run(tmp_path / "run", items, [good, other]))

    def test_answers_that_are_not_there_are_counted_and_never_a_zero(self, tmp_path: Path) -> None:
        items = items_of(40)
        items[0] = items[0].model_copy(update={"outcome": Outcome.REFUSED, "response": ""})
        run = label_run(tmp_path / "run", items, franz_labels(items[1:]))
        found = read(run)
        assert found.frames["item"].unanswered == 1
        assert found.frames["item"].labels["ins"][0] == MISSING
        (framing,) = analyse(found, rules())
        first = framing.prevalences[1]
        assert (first.level, first.rows, first.missing, first.total) == ("gemma", 39, 1, 40)
        assert "1 of 120 rows have no answer to label" in framing.notes

    def test_judges_that_a_run_has_not_asked_are_left_out_and_told(self, tmp_path: Path) -> None:
        items = items_of(40)
        some = [v for v in franz_verdicts() if v["judge"] == "positioning"]
        labels = [x for x in franz_labels(items) if x.judge == "positioning"]
        found = read(label_run(tmp_path / "run", items, labels, verdicts=some))
        assert found.lacking == ("emo",)
        (framing,) = analyse(found, rules())
        assert (list(framing.characteristics), framing.deltas) == (["ins"], ())
        assert "the run has no labels of emo: left out" in framing.notes

    def test_questions_that_a_run_has_no_labels_for_are_told(self, tmp_path: Path) -> None:
        items = items_of(40)
        some = [v for v in franz_verdicts() if v["judge"] == "positioning"]
        labels = [x for x in franz_labels(items) if x.judge == "positioning"]
        analysis = find_analysis("answers", shipped_root())
        found = read(label_run(tmp_path / "run", items, labels, verdicts=some), analysis)
        (framing,) = analyse(found, analysis)
        assert "the run has no labels for the questions rq2, rq3: not answered" in framing.notes

    def test_a_run_without_any_of_the_labels_is_refused(self, tmp_path: Path) -> None:
        other = [{"judge": "hedging", "labels": ["Hedged", "Plain"], "present": ["Hedged"]}]
        run = label_run(tmp_path / "run", items_of(1), [], verdicts=other)
        with pytest.raises(UsageError, match=r"labels of none .* 'own' \(ins, emo\).*hedging"):
            read(run)

    def test_a_run_that_is_none_of_labels_is_told(self, tmp_path: Path) -> None:
        RunDir.create(tmp_path / "run", {}).close()
        with pytest.raises(UsageError, match="holds no labels; `habitus judge` makes"):
            read(tmp_path / "run")
        (tmp_path / "run" / "labelling.json").write_text("{", encoding="utf-8")
        with pytest.raises(StoreError, match="is damaged"):
            read(tmp_path / "run")

    def test_an_analysis_that_codes_a_label_the_run_did_not_have(self, tmp_path: Path) -> None:
        """The judge's file was changed after the run."""
        verdicts = [{**v, "labels": ["In", "Out"], "present": ["In"]} for v in franz_verdicts()]
        run = label_run(tmp_path / "run", items_of(1), [], verdicts=verdicts)
        what = {"id": "ins", "name": "I", "judge": "positioning", "labels": ["Insider"]}
        with pytest.raises(UsageError, match="in this run the judge had the labels In, Out"):
            read(run, rules(characteristics=[what]))

    def test_made_up_answers_make_a_synthetic_result(self, tmp_path: Path) -> None:
        items = items_of(20)
        found = read(label_run(tmp_path / "run", items, franz_labels(items), made_up=["scripted"]))
        (framing,) = analyse(found, rules())
        assert framing.synthetic
        assert framing.notes[0].startswith("SYNTHETIC: ")

    def test_memory_is_flat_in_the_length_of_texts(self, tmp_path: Path) -> None:
        items = [x.model_copy(update={"response": "so " * 20_000}) for x in items_of(100)]
        run = label_run(tmp_path / "run", items, franz_labels(items))
        size = sum(len(item.response) for item in items)
        tracemalloc.start()
        read(run)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert size > 15_000_000
        assert peak < size / 3


def responses(personas: int = 12) -> list[JudgedItem]:
    """Answers to personas of two cultures in two settings, one query; ``none`` is shared."""
    found = []
    for i in range(personas):
        culture = ("burmese", "maori")[i % 2]
        states = {f"{culture}_1": ("follow", "avoid")[i // 2 % 2], f"{culture}_2": "neutral"}
        found.append(
            JudgedItem(
                id=f"t/hist/{culture}-{i:02d}/q-1/r0",
                group=f"{culture}-{i:02d}",
                target="t",
                fields={
                    "setting": "hist",
                    "culture": culture,
                    "persona": f"{culture}-{i:02d}",
                    **{f"state.{norm}": state for norm, state in states.items()},
                    **({f"met.{culture}_1": "yes" if i % 3 else "no"} if i else {}),
                },
            )
        )
    shared = {"setting": "none", "persona": "-"}
    found.append(JudgedItem(id="t/none/-/q-1/r0", group="-/q-1", target="t", fields=shared))
    return sorted(found, key=lambda item: item.id)


class TestNorms:
    def analysis(self) -> Any:
        return rules(
            characteristics=[
                {"id": "ins", "name": "Insider", "judge": "positioning"},
                {"id": "met", "name": "Met", "field": "met", "labels": ["yes"]},
            ],
            questions=[
                {
                    "id": "state",
                    "title": "State",
                    "compare": {"level": "state", "rows": "norm", "subsets": {"by": ["setting"]}},
                    "prevalence": ["ins", "met"],
                }
            ],
            threshold={"clusters": 2},
        )

    def test_an_answer_is_a_row_for_each_norm_of_its_persona(self, tmp_path: Path) -> None:
        items = responses()
        labels = franz_labels(items)
        found = read(label_run(tmp_path / "run", items, labels), self.analysis())
        rows = found.frames["norm"]
        assert len(rows) == 24  # two norms of twelve personas; the shared answer has none
        assert set(rows.field("state").values) == {"follow", "neutral", "avoid"}
        by_item = {x.item: int(bool(x.present)) for x in labels if x.judge == "positioning"}
        assert list(rows.labels["ins"]) == [by_item[i.id] for i in items[:-1] for _ in range(2)]

    def test_a_neutral_norm_has_no_verdict_that_could_be_missing(self, tmp_path: Path) -> None:
        items = responses()
        found = read(label_run(tmp_path / "run", items, franz_labels(items)), self.analysis())
        rows = found.frames["norm"]
        neutral = rows.field("state").rows_with("neutral")
        assert set(rows.labels["met"][neutral]) == {NOT_ASKED}
        assert np.count_nonzero(rows.labels["met"] == MISSING) == 1  # the first has no verdict
        (framing,) = analyse(found, self.analysis())
        met = {
            p.level: (p.rows, p.missing) for p in framing.prevalences if p.characteristic == "met"
        }
        assert met == {"avoid": (6, 0), "follow": (5, 1), "neutral": (0, 0)}

    def test_the_shipped_analysis_compares_settings_cultures_and_states(
        self, tmp_path: Path
    ) -> None:
        items = responses(60)
        run = label_run(tmp_path / "run", items, franz_labels(items))
        analysis = find_analysis("ccbench", shipped_root())
        by_setting, by_culture, by_state = analyse(read(run, analysis), analysis)
        assert by_setting.levels == ("none", "hist")
        assert by_culture.levels == ("burmese", "maori")
        assert by_state.levels == ("follow", "neutral", "avoid")
        assert by_culture.comparisons[0].difference is not None
        assert {d.effect for d in by_state.deltas} == {"met"}
        none = [p for p in by_setting.prevalences if p.level == "none"]
        assert {p.reason for p in none} == {"1 cluster; at least 10 are needed"}

    def test_the_analysis_is_chosen_by_the_items(self, tmp_path: Path) -> None:
        chosen = []
        plain = [item.model_copy(update={"fields": {"year": "2019"}}) for item in items_of(1)]
        for name, kind, items in (
            ("posts", "posts", plain),
            ("countries", "rows", items_of(1)),
            ("rows", "rows", plain),
            ("responses", "responses", responses()),
        ):
            path = label_run(tmp_path / name, items, [], kind=kind)
            with RunDir.open(path, write=False) as run:
                chosen.append(default_analysis(run))
        assert chosen == ["franz", "franz", "answers", "ccbench"]


def test_labels_of_other_judges_pass_by(tmp_path: Path) -> None:
    items = items_of(1)
    stray = Label(id="anything", item="nowhere", judge="other", label="x", present=True)
    found = read(label_run(tmp_path / "run", items, [stray]))
    assert (found.frames["item"].labels["ins"] == NOT_ASKED).all()
