"""The passes of an answer, where chunks held several of them and the server tells the passes only at the end."""

from collections.abc import Sequence


def pass_tokens(chunks: Sequence[int], accepted: Sequence[int]) -> list[int] | None:
    """Return the tokens of each pass.

    A pass with drafts gives those that it accepts and one more; a pass without gives one, as does the prompt's. A chunk
    is one pass, or several that went on together: chunks of 1, 3 and 3 tokens after which the server tells 2, 0 and 1
    accepted drafts were passes of 1, 3, 1 and 2 tokens.

    Args:
        chunks: the tokens of each chunk.
        accepted: the accepted drafts of each pass that had some, in order, as the server tells them at the end.

    Returns:
        None if they do not fit each other.
    """
    passes: list[int] = []
    drafted = 0
    for place, tokens in enumerate(chunks):
        left = tokens
        if not passes:
            passes.append(1)
            left -= 1
        while left and drafted < len(accepted) and accepted[drafted] + 1 <= left:
            passes.append(accepted[drafted] + 1)
            left -= passes[-1]
            drafted += 1
        if left > 1 and place == len(chunks) - 1 and drafted == len(accepted) - 1:
            passes.append(left)  # the last pass is cut where the answer ends
            left, drafted = 0, drafted + 1
        passes += [1] * left
    return passes if drafted == len(accepted) else None
