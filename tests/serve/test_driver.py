"""The app in a browser tab reads what comes as one on a terminal does."""

import os
import sys

import pytest
from textual import events
from textual.app import App
from textual.message import Message

from ladechat.serve.driver import PageDriver


def packet(data: bytes) -> bytes:
    return b"D" + len(data).to_bytes(4, "big") + data


async def test_a_paste_into_a_tab_is_text_whatever_it_holds_and_keys_go_on_after_what_means_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = os.pipe()
    monkeypatch.setattr("sys.__stdin__", os.fdopen(here))
    monkeypatch.setattr("sys.__stdout__", sys.__stderr__)
    monkeypatch.setattr("ladechat.serve.driver.STANDARD_INPUT", here)
    driver = PageDriver(App[None]())
    come: list[Message] = []
    monkeypatch.setattr(driver, "process_message", come.append)
    parts = b"\x1b[99999999;1u", b"\x1b[200~build \x1b[32mOK\x1b", b"[0m done\r/quit\r\x1b[201", b"~", b"x"
    os.write(there, b"".join(map(packet, parts)))
    os.close(there)
    driver.run_input_thread()
    assert [one.text for one in come if isinstance(one, events.Paste)] == ["build \x1b[32mOK\x1b[0m done\r/quit\r"]
    assert [one.key for one in come if isinstance(one, events.Key)] == ["x"]
