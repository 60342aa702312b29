"""Histories that do not fit: foreseen, refused or shortened by whole sessions, and on record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

import loopback
from habitus.checklists import Query
from habitus.content import shipped_root
from habitus.errors import ConfigChangedError
from habitus.experiments import RunRequest, run_experiment
from habitus.experiments.fitting import Fitting, Window
from habitus.experiments.responding import Question, Responder, Target
from habitus.experiments.settings import Setting, load_setting
from habitus.models import ChatModel
from habitus.models.context import TokenEstimate, stated_length
from habitus.models.rejections import read_rejection
from habitus.models.scripted import ScriptedModel
from habitus.records import (
    Attempt,
    Message,
    Outcome,
    Reply,
    Request,
    Response,
    Sampling,
    Turn,
    Usage,
)
from habitus.running import pilot_first
from habitus.store import RunDir
from habitus.store.canonical import digest
from loopback import serving
from study_fixture import (
    FAST,
    Answering,
    calls_of,
    contents,
    harbour,
    opening,
    set_options,
    study_of,
    terminal_in,
)
from test_models_openai import OVERFLOWS

LIMIT = 8192
SETTINGS = shipped_root() / "experiments" / "settings"
QUERIES = tuple(
    Query(id=f"harbour-{n:03}", topic="sleep", text=f"What helps, number {n}?") for n in range(1, 5)
)
NORMS = "- Norm one: the person keeps it.\n- Norm two: the person rejects it."


def setting(name: str) -> Setting:
    return load_setting(SETTINGS / f"{name}.yaml")


def sessions(n: int = 18, turns: int = 8, words: int = 60) -> tuple[Attempt, ...]:
    """A history of n sessions; by default about 11,000 tokens at four characters each."""
    return tuple(
        Attempt(
            id=f"harbour-01/s{number:02d}/a0",
            persona="harbour-01",
            number=number,
            attempt=0,
            kind="everyday",
            opener="x-1",
            turns=tuple(
                Turn(
                    speaker="persona" if turn % 2 == 0 else "assistant",
                    text=f"s{number:02d} " + "talk " * words,
                )
                for turn in range(turns)
            ),
            decision="accepted",
        )
        for number in range(1, n + 1)
    )


async def answered(
    model: ChatModel,
    window: Window,
    history: tuple[Attempt, ...] | None = None,
    names: tuple[str, ...] = ("hist", "ccot"),
    queries: tuple[Query, ...] = QUERIES,
) -> list[Response]:
    """One group of questions, the first of them alone, as the pipeline asks them."""
    target = Target("t", model, Sampling(max_tokens=window.answer), window)
    group = [setting(name) for name in names]
    fitting = Fitting(window, group, queries, sessions() if history is None else history, NORMS)
    questions = [
        Question(target, one, "harbour-01", query, 0, fitting) for query in queries for one in group
    ]
    responses: list[Response] = []

    async def use(_: Question, response: Response) -> None:
        responses.append(response)

    await pilot_first(questions, Responder(1).respond, use)
    return sorted(responses, key=lambda response: response.id)


def texts(body: Mapping[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


def server_tokens(body: Mapping[str, Any], per_byte: float = 0.25) -> int:
    return int(len(texts(body).encode()) * per_byte)


def limited(
    per_byte: float = 0.25, words: str = "This model's maximum context length is {limit} tokens. "
    "However, you requested {tokens} tokens.",
) -> loopback.Step:  # fmt: skip
    """A server with a context of 8,192 tokens."""

    async def step(request: Any, body: dict[str, Any]) -> Any:
        tokens = server_tokens(body, per_byte)
        if tokens + (body.get("max_tokens") or 0) > LIMIT:
            told = words.format(limit=LIMIT, tokens=tokens)
            return await loopback.status(400, told)(request, body)
        usage = {"prompt_tokens": tokens, "completion_tokens": 5}
        text = {"content": "I thought.\nANSWER:\nRest."}
        return await loopback.raw(loopback.completion(text, usage=usage))(request, body)

    return step


def shown(body: Mapping[str, Any]) -> list[int]:
    """The sessions in a request."""
    text = texts(body)
    return [number for number in range(1, 19) if f"s{number:02d} " in text]


class TestAServerWithAShortContext:
    """A history of 18 sessions, and a server that takes 8,192 tokens."""

    async def test_refuse_asks_nothing(self) -> None:
        async with serving(limited()) as server:
            found = await answered(server.model(), Window(LIMIT, 500))
        assert server.bodies == []
        assert {(r.outcome, r.reason) for r in found} == {
            (Outcome.OVERFLOW, "foreseen: does not fit into 8,192 tokens")
        }
        assert all((r.calls, r.text, r.dropped) == ((), "", ()) for r in found)

    async def test_drop_oldest_leaves_whole_sessions_out_and_says_which(self) -> None:
        async with serving(limited()) as server:
            found = await answered(server.model(), Window(LIMIT, 500, "drop_oldest"))
        assert {r.outcome for r in found} == {Outcome.OK}
        (dropped,) = {r.dropped for r in found}
        assert dropped == tuple(range(1, len(dropped) + 1))
        assert 0 < len(dropped) < 17
        for body in server.bodies:
            assert shown(body) == list(range(len(dropped) + 1, 19))
            assert texts(body).count("talk ") == 60 * 8 * (18 - len(dropped))
        asked = [body["messages"][-1]["content"] for body in server.bodies]
        assert all(sum(query.text in text for text in asked) == 2 for query in QUERIES)
        assert len(server.bodies) == len(found)

    async def test_no_more_is_left_out_than_must_be(self) -> None:
        async with serving(limited()) as server:
            (found,) = await answered(
                server.model(), Window(LIMIT, 500, "drop_oldest"), None, ("hist",), QUERIES[:1]
            )
        one = server_tokens(server.bodies[0]) / (18 - len(found.dropped))
        assert (server_tokens(server.bodies[0]) + one) * 1.1 + 500 > LIMIT - one

    @pytest.mark.parametrize("known", [None, 128_000], ids=["unknown", "wrong in the entry"])
    async def test_a_length_that_the_server_names_is_learned_by_the_first_question(
        self, known: int | None
    ) -> None:
        async with serving(limited()) as server:
            found = await answered(server.model(), Window(known, 500, "drop_oldest"))
        assert {r.outcome for r in found} == {Outcome.OK}
        refused = [body for body in server.bodies if shown(body) == list(range(1, 19))]
        assert len(refused) == 1  # by the first question; nobody asks so again
        assert len({r.dropped for r in found}) == 1
        assert sorted(len(r.calls) for r in found) == [1] * 7 + [2]

    async def test_refusing_learns_it_too(self) -> None:
        async with serving(limited()) as server:
            found = await answered(server.model(), Window(None, 500))
        assert {r.outcome for r in found} == {Outcome.OVERFLOW}
        assert len(server.bodies) == 1
        assert (
            sorted(r.reason for r in found)
            == ["context length"] + ["foreseen: does not fit into 8,192 tokens"] * 7
        )

    async def test_a_server_that_does_not_say_how_much_fits(self) -> None:
        async with serving(limited(words="the prompt is too long")) as server:
            found = await answered(server.model(), Window(None, 500, "drop_oldest"))
        assert {r.outcome for r in found} == {Outcome.OK}
        assert len({r.dropped for r in found}) == 1
        sent = [tuple(shown(body)) for body in server.bodies]
        assert len(sent) == len(set(sent)) + 7  # one session less each time, and then all alike

    async def test_an_overflow_is_never_asked_unchanged(self) -> None:
        async with serving(limited(words="the prompt is too long")) as server:
            await answered(server.model(), Window(None, 500))
        assert len({texts(body) for body in server.bodies}) == len(server.bodies) == 8

    async def test_text_that_takes_more_tokens_is_noticed_by_the_servers_own_count(self) -> None:
        """Half a token a byte: what was estimated to fit is corrected after the first answer."""
        history = sessions(18, 8, 25)
        async with serving(limited(0.5, "prompt is too long")) as server:
            found = await answered(server.model(), Window(LIMIT, 100, "drop_oldest"), history)
        assert {r.outcome for r in found} == {Outcome.OK}
        refusals = sum(len(r.calls) - 1 for r in found)
        assert refusals <= 17
        assert sum(len(r.calls) > 1 for r in found) <= 1

    async def test_a_server_that_cuts_in_silence_is_found_out_by_its_count(self) -> None:
        """Counts more than was estimated, and rejects nothing: the others of the group fit."""
        sizes: list[int] = []

        def script(request: Request) -> Reply:
            size = sum(len(m.text.encode()) for m in request.all_messages)
            sizes.append(size // 2)
            return Reply(Outcome.OK, "I thought.\nANSWER:\nRest.", usage=Usage(size // 2, 5, 0))

        window = Window(LIMIT, 100, "drop_oldest")
        await answered(ScriptedModel("t", script), window, sessions(18, 8, 30))
        assert sizes[0] + 100 > LIMIT
        assert all(size + 100 <= LIMIT for size in sizes[1:])

    @pytest.mark.parametrize("policy", ["refuse", "drop_oldest"])
    async def test_query_and_norms_are_never_cut(self, policy: Any) -> None:
        long = (Query(id="harbour-001", topic="sleep", text="What helps? " * 4000),)
        window = Window(LIMIT, 100, policy)
        model = Answering()
        for names in (("hist", "ccot"), ("norms",), ("none",)):
            found = await answered(model, window, None, names, long)
            assert {r.outcome for r in found} == {Outcome.OVERFLOW}
        assert model.asked == []

    async def test_the_last_session_stays(self) -> None:
        model = Answering()
        window = Window(LIMIT, 100, "drop_oldest")
        found = await answered(model, window, sessions(3, 8, 2000))
        assert {(r.outcome, r.dropped) for r in found} == {(Outcome.OVERFLOW, ())}
        assert model.asked == []

    async def test_later_answers_change_nothing_so_that_their_order_does_not_matter(self) -> None:
        counts = iter([100, 100_000, 100_000, 100_000])

        def script(_: Request) -> Reply:
            return Reply(Outcome.OK, "Rest.", usage=Usage(next(counts), 5, 0))

        window = Window(LIMIT, 100, "drop_oldest")
        fitting = Fitting(window, [setting("hist")], QUERIES, sessions())
        target = Target("t", ScriptedModel("t", script), Sampling(max_tokens=100), window)
        found = [
            await Responder(1).respond(Question(target, setting("hist"), "p", q, 0, fitting))
            for q in QUERIES
        ]
        assert len({r.dropped for r in found}) == 1
        assert {r.outcome for r in found} == {Outcome.OK}

    def test_room_is_kept_for_answers_and_for_a_follow_up_twice(self) -> None:
        def dropped(name: str, answer: int) -> int:
            window = Window(LIMIT, answer, "drop_oldest")
            return Fitting(window, [setting(name)], QUERIES, sessions()).dropped

        assert dropped("hist", 1) < dropped("hist", 2000) < dropped("ccot", 2000)
        assert dropped("ccot", 1000) == dropped("hist", 2000)

    async def test_what_fits_is_sent_whole(self) -> None:
        model = Answering()
        found = await answered(model, Window(LIMIT, 500, "drop_oldest"), sessions(4))
        assert {(r.outcome, r.dropped) for r in found} == {(Outcome.OK, ())}
        same = Answering()
        assert await answered(same, Window(None, 500), sessions(4)) == found
        assert same.asked == model.asked

    async def test_without_a_length_nothing_is_foreseen(self) -> None:
        model = Answering()
        found = await answered(model, Window(None, 500), sessions(100))
        assert {r.outcome for r in found} == {Outcome.OK}


class TestEstimates:
    def test_four_bytes_a_token_and_a_tenth_more(self) -> None:
        assert TokenEstimate().tokens([Message("user", "x" * 4000)]) == pytest.approx(1109, abs=1)
        assert TokenEstimate().tokens([]) <= 1

    def test_a_servers_count_is_better(self) -> None:
        messages = [Message("user", "x" * 1000)]
        measured = TokenEstimate.measured(messages, 500)
        assert measured is not None
        assert measured.tokens(messages) == pytest.approx(500 * 1.05 + 9, abs=1)
        assert TokenEstimate.measured(messages, 0) is None
        assert TokenEstimate.measured([], 10) is None

    NAMED: ClassVar = {
        "OpenAI": 8192, "vLLM": 2048, "vLLM, by max_tokens": 2048, "vLLM, newer": 8192,
        "llama.cpp, newer": 8192, "Anthropic": 200_000, "Mistral": 32_768, "TGI": 4096,
    }  # fmt: skip

    @pytest.mark.parametrize("server", OVERFLOWS)
    def test_lengths_that_servers_name(self, server: str) -> None:
        body = b'{"error": {"message": "%b"}}' % OVERFLOWS[server].encode()
        text = read_rejection(400, body).text
        assert stated_length(text) == self.NAMED.get(server)

    @pytest.mark.parametrize("text", ["", "context length", "context length 8", "8192 tokens"])
    def test_no_length(self, text: str) -> None:
        assert stated_length(text) is None


LONG = {"history.domain_sessions": 2, "history.everyday_sessions": 2, "settings": ["none", "hist"]}
SMALL = {"models.small": {"backend": "scripted", "options": {"script": "helpers"}},
         "targets": {"main": {"model": "small", "max_tokens": 100}}}  # fmt: skip


def talkative(request: Request) -> str | None:
    return "word " * 100 if request.context["role"] == "assistant" else None


def run(folder: Path, out: str, context: int | None = 700, **changes: Any) -> Path:
    whole = {**LONG, **SMALL, "models.small.context_length": context, **changes}
    model = changes.pop("model", None) or Answering(talkative)
    whole.pop("model", None)
    run_experiment(study_of(folder, whole), RunRequest(out=folder / out, opener=opening(model)))
    return folder / out


def responses(path: Path) -> dict[str, list[Response]]:
    with RunDir.open(path, write=False) as opened:
        found = list(opened.records.iterate("responses", Response))
    return {s: [r for r in found if r.setting == s] for s in ("none", "hist")}


class TestRuns:
    def test_refused_histories_are_counted_and_the_rest_goes_on(self, tmp_path: Path) -> None:
        found = responses(run(tmp_path, "run"))
        assert {r.outcome for r in found["none"]} == {Outcome.OK}
        assert {(r.outcome, r.calls) for r in found["hist"]} == {(Outcome.OVERFLOW, ())}

    def test_dropped_sessions_are_on_record_and_a_second_run_asks_nothing(
        self, tmp_path: Path
    ) -> None:
        first = run(tmp_path, "run", overflow="drop_oldest")
        found = responses(first)["hist"]
        assert {r.outcome for r in found} == {Outcome.OK}
        assert all(r.dropped and r.dropped == tuple(range(1, len(r.dropped) + 1)) for r in found)
        (first / "done.json").unlink()
        before, calls = contents(first), calls_of(first)
        run(tmp_path, "run", overflow="drop_oldest")
        assert (contents(first), calls_of(first)) == (before, calls)

    def test_the_policy_is_part_of_what_a_run_is_held_to(self, tmp_path: Path) -> None:
        run(tmp_path, "run", overflow="drop_oldest")
        with pytest.raises(ConfigChangedError, match='overflow: "drop_oldest" -> '):
            run(tmp_path, "run")

    def test_a_run_from_before_there_was_a_policy_goes_on(self, tmp_path: Path) -> None:
        """And from before there were caps, and dates of prices."""
        price = {"models.small.price": {"input": 1, "output": 1}}
        path = run(tmp_path, "run", 9000, **price)
        before = contents(path)
        config = json.loads((path / "experiment.json").read_bytes())
        assert "overflow" not in config
        for name in ("calls", "tokens", "cost"):
            del config["limits"][name]
        for name in ("date", "source"):
            del config["models"]["small"]["price"][name]
        (path / "experiment.json").write_text(json.dumps(config))
        manifest = json.loads((path / "manifest.json").read_bytes())
        (path / "manifest.json").write_text(json.dumps({**manifest, "config": digest(config)}))
        model = Answering()
        run(tmp_path, "run", 9000, **price, model=model)
        assert model.asked == []
        assert contents(path) == before

    def test_records_from_before_read_as_complete(self) -> None:
        old = {"id": "t/hist/p/q/r0", "target": "t", "setting": "hist", "persona": "p",
               "query": "q", "repeat": 0}  # fmt: skip
        assert Response.model_validate(old).dropped == ()


def command(folder: Path, server: loopback.Server, *more: str) -> list[str]:
    far = {"backend": "openai", "model": "m", "base_url": server.url}
    target = {"models.small": far, "targets": {"main": {"model": "small", "max_tokens": 100}}}
    return ["run", str(harbour(folder)), *more, *set_options({**FAST, **LONG, **target})]


class TestAgainstAServer:
    """Whole runs, by command, with a target on a server."""

    def test_a_history_beyond_the_context_is_refused_or_shortened_as_chosen(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        terminal = terminal_in(tmp_path, monkeypatch, capsys)
        tight = rejecting_longer_than(600)
        with loopback.served(tight) as server:
            words = command(tmp_path, server)
            code, _, err = terminal(*words, "--out", "refused")
            assert code == 1
            assert "  responses  overflow: 4\n" in err
            longest = max(len(texts(body)) for body in server.bodies)
            assert terminal(*words, "--out", "dropped", "--set=overflow=drop_oldest")[0] == 0
            server.bodies.clear()
            terminal(*words, "--out", "dropped", "--set=overflow=drop_oldest")
            assert server.bodies == []
        assert longest > 600
        found = responses(tmp_path / "dropped")["hist"]
        assert all(r.dropped and r.outcome is Outcome.OK for r in found)

    def test_what_a_model_rejects_is_learned_once_on_record_and_in_status(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def objection(body: dict[str, Any]) -> str | None:
            if "max_tokens" in body:
                return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            if body["messages"][0]["role"] == "system":
                return "System role not supported"
            return None

        terminal = terminal_in(tmp_path, monkeypatch, capsys)
        with loopback.served(loopback.rejecting(objection)) as server:
            words = command(tmp_path, server, "--set", 'settings=["none","norms"]')
            words = [word for word in words if not word.startswith("--set=settings")]
            assert terminal(*words)[0] == 0
            rejected = [body for body in server.bodies if objection(body)]
        assert 2 <= len(rejected) < len(server.bodies)
        found = terminal.json("status", "first", "--json")["learned"]
        assert found == {
            "small": {"max_tokens_field": "max_completion_tokens", "system_role": False}
        }
        assert "small rejected what it was sent; since then" in terminal("status", "first")[1]
        with RunDir.open(tmp_path / "runs" / "first", write=False) as opened:
            calls = [c for c in opened.calls.iterate() if c.model == "small"]
        assert all("max_completion_tokens" in call.reply.sent for call in calls)
        norms = [c for c in calls if "/norms/" in c.record]
        assert all(c.request["messages"][0][0] == "system" for c in norms)
        assert all(c.reply.sent["messages"][0]["role"] == "user" for c in norms)


def rejecting_longer_than(size: int) -> loopback.Step:
    """A server that takes so many characters and does not say so ahead."""
    return loopback.rejecting(
        lambda body: (
            "the input length exceeds the context length" if len(texts(body)) > size else None
        )
    )
