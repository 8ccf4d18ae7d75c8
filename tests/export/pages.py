"""What an exported page holds, read by the standard library's parser."""

from html.parser import HTMLParser

VOID = {"meta", "input"}
TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "section", "div", "span", "label", "input", "dl",
    "dt", "dd", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "code", "script",
    "button", "svg", "rect", "article", "ol", "li", "pre", "a",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "scope", "type", "min", "max", "value", "aria-label",
    "autocomplete", "id", "href", "step", "role", "viewbox", "preserveaspectratio", "x", "y", "width", "height",
    "data-name", "data-passes", "data-seconds", "data-outcome", "data-running",
    "data-unit",
}  # fmt: skip
"""All that a page is made of: nothing that would fetch, link elsewhere, or run."""


class Page(HTMLParser):
    """A page, refused where its elements do not nest or are none of those that it may have.

    Attributes:
        answers: of each answer, the class and the text of each step.
        cues: of each answer, the class and the text of each run of drafted tokens.
        tokens: of each answer, the class and the text of each token in its table.
        texts: what stands in elements, by their tags.
    """

    def __init__(self, content: str) -> None:
        super().__init__()
        self.answers: list[list[tuple[str, str]]] = []
        self.cues: list[list[tuple[str, str]]] = []
        self.tokens: list[list[tuple[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.policy = ""
        self._open: list[tuple[str, str]] = []
        self.feed(content)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert tag in TAGS and set(given) <= ATTRIBUTES, (tag, given)
        assert given.get("href", "#").startswith("#")
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        if tag in VOID:
            return
        parent = self._open[-1] if self._open else ("", "")
        self._open.append((tag, given.get("class", "")))
        self.texts.setdefault(tag, []).append("")
        if given.get("class") == "said answer":
            self.answers.append([])
            self.cues.append([])
            self.tokens.append([])
        elif tag == "span" and parent == ("p", "said answer"):
            self.answers[-1].append((given["class"], ""))
        elif tag == "span" and self._in_step(2):
            self.cues[-1].append((given["class"], ""))
        elif tag == "code":
            self.tokens[-1].append((given["class"], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if not self._open:
            assert not data.strip()
            return
        tag, _ = self._open[-1]
        self.texts[tag][-1] += data
        if tag == "code":
            _add(self.tokens, data)
        elif tag == "span" and self._in_step(1):
            _add(self.answers, data)
        elif tag == "span" and self._in_step(2):
            _add(self.answers, data)
            _add(self.cues, data)

    def _in_step(self, depth: int) -> bool:
        """Is that many elements up the answer itself?"""
        return len(self._open) > depth and self._open[-1 - depth] == ("p", "said answer")

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def _add(found: list[list[tuple[str, str]]], data: str) -> None:
    look, text = found[-1][-1]
    found[-1][-1] = (look, text + data)
