"""The check of the code's prose finds private words in docstrings and comments, and nowhere else."""

from tools.plain_words import PRIVATE, prose

SOURCE = '''"""It is kept."""
KEPT = "told"  # besides that
def kept(wished: int) -> None:
    """Do it.

    Args:
        wished: see `kept`.
    """
    print("seldom")
'''


def test_docstrings_and_comments_are_read_and_names_and_texts_are_not() -> None:
    found = [word for _, text in prose(SOURCE) for word in PRIVATE.findall(text)]
    assert found == ["kept", "besides"]
