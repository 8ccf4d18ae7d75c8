"""Code with tabs is exported with them: to a Makefile spaces are an error."""

from ladechat.export.conversation import ExportedTurn, Talk
from ladechat.export.html import html
from ladechat.export.markdown import as_text, markdown

MAKEFILE = "```make\nall:\n\tcc a.c\t-o a\n```"


def test_tabs_in_code_are_tabs_in_a_page_and_in_markdown() -> None:
    talk = Talk("t", "m", "p", "s", [ExportedTurn("Write one.", earlier_answer=MAKEFILE)], [])
    assert "\n\tcc a.c\t-o a\n" in html(talk) and "\n\tcc a.c\t-o a\n" in markdown(talk)


def test_outside_of_code_a_tab_does_not_make_a_line_code() -> None:
    assert as_text("one\n\ttwo") == "one  \n    two"
