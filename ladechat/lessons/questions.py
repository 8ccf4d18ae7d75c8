"""After the scenes: ten questions to test oneself, each with its answer hidden until a key."""

from ladechat.lessons.scene import LENS, MASK, POOL, SPEED, Recall, Say, Scene

END = (
    "To read: Fu, Bailis, Stoica and Zhang 2024, lookahead decoding, arXiv 2402.02057; Wu et al. 2024, hidden "
    "transfer, arXiv 2404.12022."
)

SCENE = Scene(
    name="questions",
    title="Ten questions",
    question="",
    decoder="lookahead",
    parameters={},
    minutes=3,
    cards=(
        Recall(
            "What is in the Jacobi window, and how does an n-gram come out of it?",
            "What the last N − 1 passes guessed, W tokens a row, the oldest row on top; at first random tokens of "
            "the text. A diagonal, from the top row to the row that the pass writes, is an n-gram. Then the oldest row "
            "leaves, and the window moves on by one place.",
        ),
        Recall(
            "What is the n-gram pool, and when is an entry used?",
            "It keeps n-grams of window, prompt and text. Those that begin with the last tokens are its guesses, up to "
            "G a pass: longest match first (four at most), of equals the latest. It stays; when full, the oldest "
            "leave.",
            POOL,
        ),
        Recall(
            "Why is the text exactly that of plain decoding?",
            "Only tokens that the model itself chooses are accepted. At T > 0 the token is drawn first; a draft is "
            "accepted if it is that token. Only in 16 bits may rounding swap two tokens that nearly tie.",
            POOL,
        ),
        Recall(
            "Why can a pass of 60 slots cost about as much as one of a single slot, and when does it not?",
            "A pass reads all weights once, for one slot or for 60, and on a GPU reading takes nearly all of its time. "
            "Not where computing takes longer: on a CPU, with many users or a very long text, from some hundred slots.",
            SPEED,
        ),
        Recall(
            "What do W, N and G change, and what do they cost?",
            "W: tokens in a row, more n-grams. N: their length. G: guesses checked in a pass. At most (N − 1)(W + G) "
            "slots: one more W or G costs N − 1 of them, one more N costs W + G.",
            SPEED,
        ),
        Recall(
            "What is in one pass, and which slot sees which?",
            "The last token, the window (lookahead branch), the guesses (verification branch). All see the text. A "
            "cell of the window sees the top row up to where its diagonal begins, and that diagonal down to itself; a "
            "token of a guess sees the guess up to itself. What is not accepted leaves the KV cache.",
            MASK,
        ),
        Recall(
            "Hidden transfer: what is moved where, checked when, trained on what?",
            "The hidden state of a token, half-way up, times one trained matrix for each place ahead: pseudo states, "
            "which go through the upper layers. Their guesses form a tree, which the next pass checks. Trained on the "
            "model's own text, by cross-entropy, or KL to the model's own output; the model stays as it is, and the "
            "text exact. No pseudo state stays in the cache.",
            LENS,
        ),
        Recall(
            "How does it differ from Medusa, and from lookahead decoding?",
            "Medusa's heads guess from the top layer's state; here the upper layers still work on the guesses, so more "
            "of them are right. Lookahead decoding needs no training: it guesses from the window and the pool.",
            LENS,
        ),
        Recall(
            "What is S, and how does the speedup follow from it?",
            "S is the tokens a pass. Speedup = S ÷ the cost of a pass in plain passes.",
            SPEED,
        ),
        Recall(
            "When is parallel decoding slower than plain decoding?",
            "Where a pass costs more plain passes than it brings tokens: few drafts accepted, a slow or busy machine, "
            "a batch of many users, a window too large.",
            SPEED,
        ),
        Say(END, SPEED),
    ),
)
