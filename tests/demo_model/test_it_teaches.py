"""Claims about the bundled model as a teacher: it answers what the lessons say it answers, in other wordings too.

The wordings were written by somebody who had seen neither the corpus nor an answer.
"""

import re

import pytest

from ladechat.lessons.scenes import SCENES
from tests.tiny import DEMO
from tools.demo_model.evaluation.speaker import Speaker

NAMED = {
    "What is a forward pass?": "one run of the model",
    "Why is memory the bottleneck?": "weights must be read",
    "How does Jacobi decoding work?": "corrects? all|correct all",
    "Why does the Jacobi iteration converge?": "at least one more token is right",
    "Why does the window have rows?": "diagonal",
    "How does the window begin?": "random tokens",
    "How does the pool find n-grams?": "last four tokens",
    "What happens when G is zero?": "no n-gram of the pool",
    "What is the attention mask?": "diagonal",
    "Is lookahead decoding exact?": "same tokens",
    "How should I choose W, N and G?": "tokens per second",
    "When is lookahead decoding slower?": "costs more",
    "What are carriers?": "guesses for the next pass",
    "How are the maps trained?": "model itself has written",
}
"""What stands at the ends of scenes, and what a right answer says."""

WORDINGS = {
    "no n-gram of the pool": ("What if I set G to 0?", "is the answer still right with zero guesses"),
    "guesses several|guesses many": (  # answered with the method in general, which is no nonsense, but no answer either
        (
            "So suppose lookahead decoding is allowed to verify no guesses at all per pass, zero of them. Does the "
            "window then do any good, or is it just plain decoding with extra work?"
        ),
    ),
    "last (four )?tokens": (
        "How does the pool know which n-grams to hand out next?",
        "I'm looking for the key of the n-gram pool. Is it one token or several?",
        (
            'when the text ends in "the cat", which entries of the n-gram pool get tried, those starting with "the" or '
            'those starting with "cat"?'
        ),
    ),
    "[Cc]arriers": (
        "In hidden transfer, what is a carrier?",
        "Why would a token that hasn't even been accepted yet need to carry pseudo states? Seems a waste to me.",
        "what does the --carriers option do, and what do I lose if only a few slots are carriers",
    ),
    "model itself has written": (
        "How do you train the maps for hidden transfer?",
        (
            "Does training the maps change the weights of the language model? And where would I even get a data set "
            "for that?"
        ),
        "kl divergence or cross entropy, which loss is used when the hidden transfer maps are trained",
    ),
    "half-way up": (
        "Hidden transfer vs Medusa vs lookahead: what's the difference, in short?",
        (
            "I already know Medusa's extra heads. Why should pushing a made-up hidden state through half of the "
            "network guess any better than a head on top?"
        ),
        "which of the methods needs no trainig at all, and is it worse for that?",
    ),
    "random tokens": (
        "What is in the window at the very beginning, before the model has computed anything?",
        (
            "Hmm, the window is supposed to hold the results of earlier passes. But at the first pass there are no "
            "earlier passes, so where do those tokens come from?"
        ),
        "doesn't starting lookahead with random tokens ruin the first words of the answer?",
    ),
    "waits for the weights": (
        "Why does checking 60 tokens on a graphics card take hardly longer than checking one?",
        "slots almost free on a gpu?? I don't believe it, more tokens is more work",
        "My laptop gets slower with more slots but people say a GPU doesn't. What is the reason for that difference?",
    ),
    "several users": (
        "Does lookahead decoding still pay off if I serve 64 users at once?",
        "Why is the speedup of these parallel decoding tricks always quoted for batch size 1?",
        "batching and drafting both put more tokens in one pass, so do they get in each other's way?",
    ),
}
"""What a right answer says, and questions by people who have never seen how the model was asked before."""

CASES = [*NAMED.items(), *((question, says) for says, questions in WORDINGS.items() for question in questions)]


@pytest.fixture(scope="module")
def speaker() -> Speaker:
    return Speaker(DEMO)


def test_each_question_that_a_scene_names_is_tried() -> None:
    assert sorted(NAMED) == sorted(question for scene in SCENES for question in scene.asks)


@pytest.mark.full
@pytest.mark.parametrize(("question", "says"), CASES, ids=[question[:40] for question, _ in CASES])
def test_it_answers_what_it_is_asked(speaker: Speaker, question: str, says: str) -> None:
    [reply] = speaker.converse([question])
    assert reply.ended and re.search(says, reply.text), reply.text
