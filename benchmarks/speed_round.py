"""One round of `benchmarks.speed`, in a process of its own: what a whole process has in common must not stay the same.

Run by it as `python -m benchmarks.speed_round OPTIONS`, the options as JSON.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.speed_contenders import Contenders, make_contenders, passes_of
from benchmarks.speed_prompts import LIMIT, prompts_of
from benchmarks.taking_turns import take_turns
from ladechat.bench.contenders import Answer
from ladechat.bench.measure import Round
from ladechat.bench.prompts import Prompt
from ladechat.decoder.step import Limits
from ladechat.garbage import collect_seldom
from ladechat.model.loading import load


@dataclass(frozen=True)
class Options:
    """What a round is told.

    Attributes:
        model: the folder of the checkpoint.
        number: of the round: who begins hangs on it.
        compiled: whether those with compiled passes answer all prompts, and not those with eager ones.
        grid: whether many fixed settings take part.
        reference: the Python of the authors' implementation, if that takes part: beside eager passes.
        answers: the file that the answers are written to.
    """

    model: str
    number: int
    compiled: bool
    grid: bool
    reference: str | None
    answers: str


def main() -> None:
    """Answer all prompts, and write what it took."""
    options = Options(**json.loads(sys.argv[1]))
    folder = Path(options.model)
    loaded = load(folder, folder.name, "cpu", "float32", report=lambda _: None, progress=lambda _: None)
    ways = passes_of(loaded)
    loaded.runner.compiled = ways["compiled"] if options.compiled else None
    prompts, limits = prompts_of(loaded), Limits(LIMIT, loaded.eos_ids)
    reference = Path(options.reference) if options.reference else None
    contenders = make_contenders(loaded, prompts, options.grid, reference)
    collect_seldom()
    found = in_turns(contenders, prompts, limits, options.number)
    check({name: [[answer] for answer in answers] for name, answers in found.items()}, prompts)
    write(found, Path(options.answers))


def in_turns(contenders: Contenders, prompts: Sequence[Prompt], limits: Limits, number: int) -> Round:
    """A session of each kind, of those in turns and of those in one go, behind a warm-up that does not count."""
    found: Round = {}
    for kind in dict.fromkeys(prompt.kind for prompt in prompts):
        session = [prompt for prompt in prompts if prompt.kind == kind]
        take_turns(contenders.stepping, contenders.others, session[:1], limits, number)
        for name, answers in take_turns(contenders.stepping, contenders.others, session, limits, number).items():
            found[name] = [*found.get(name, []), *answers]
    return found


def check(answers: Mapping[str, Sequence[Sequence[Answer]]], prompts: Sequence[Prompt]) -> None:
    """All have written the same.

    Raises:
        AssertionError: one has not.
    """
    for name, by_prompt in answers.items():
        for prompt, repeated in zip(prompts, by_prompt, strict=True):
            assert {answer.tokens for answer in repeated} == {prompt.expected}, (name, prompt.name)


def write(found: Round, file: Path) -> None:
    """Leave the answers of a round in a file, without the verdicts on drafts, which nobody asks for."""
    told = {
        name: [asdict(replace(answer, tested=None, accepted={})) for answer in answers]
        for name, answers in found.items()
    }
    part = file.with_suffix(".part")
    part.write_text(json.dumps(told), encoding="utf-8")
    part.replace(file)  # at once: where rounds are kept, one that is there was measured to its end


def read(file: Path) -> Round:
    """What `write` has left."""
    told = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: [Answer(**{**one, "tokens": tuple(one["tokens"])}) for one in answers] for name, answers in told.items()
    }


if __name__ == "__main__":
    main()
