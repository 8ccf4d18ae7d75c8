"""Copying code, and recordings of a session: making, replaying and exporting them."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

from ladechat.files import why_unread
from ladechat.formats import ENDINGS, FORMATS, ONE_FILE, ending
from ladechat.protocol import MAX_LINE_BYTES, Event, encode
from ladechat.screens.chat.context import SECONDS_FOR_A_PATH, ChatContext
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.screens.terminal.app_on_terminal import AppOnTerminal
from ladechat.session.conversations.saved import shortened
from ladechat.session.recordings.reading import UnreadableRecording
from ladechat.session.recordings.recorder import SUFFIX, default_path, latest_recording, recordings_folder
from ladechat.session.recordings.recording import IDLE_SECONDS, Recording
from ladechat.terminal import PROGRESS_LINES, in_page
from ladechat.widgets.transcript.markdown import listings_of

IN_PAGE = "In a browser /export takes no argument: it writes a page into the server's folder."
UNPAIRED = "A quotation mark has no partner; put a name with spaces or an apostrophe between two double ones."
COMMAND = (sys.executable, "-P", "-m", "ladechat", "export")
"""`-P` keeps the working directory off `sys.path`, as for an engine."""
SECONDS_TO_LEAVE = 3.0
"""The time that an interrupted export has to delete its unfinished file before it is killed."""
MOST_OF_PROGRESS = 1 << 16
"""The longest line, in characters, that is taken for a state of progress."""
FAILURE = re.compile("(?:ladechat|Error): (.+)")
"""Matches the reason for a failure, as the program or its command line reports it."""


class Recordings:
    """Copies, recordings, replays and exports of this session."""

    def __init__(self, chat: ChatContext) -> None:
        self._chat, self._view = chat, chat.view
        self._recorder = chat.session.recorder
        self._recorded: Path | None = None
        self._exports: list[asyncio.Task[None]] = []
        self._one_at_a_time = asyncio.Lock()

    async def end(self) -> None:
        """Cancel all exports when the app ends."""
        for export in self._exports:
            export.cancel()
        await asyncio.gather(*self._exports, return_exceptions=True)

    # --- copies -------------------------------------------------------------------------------------------------------

    def action_copy_code(self, number: str = "") -> None:
        """Copy a block of code from the answer to the chosen question, or else from the last answer that has any: the
        last block, or the one of this number, from 1.
        """
        found = (listings_of(answer) for answer in self._view.presenter.answers_to_copy())
        listings = next(filter(None, found), [])
        places = [str(place) for place in range(1, len(listings) + 1)]
        if not listings:
            which = "any" if self._view.presenter.chosen is None else "this"
            self._chat.refuse(f"There is no block of code in {which} answer.")
        elif number and number not in places:
            there = f"blocks 1 to {places[-1]}" if places[1:] else "one block of code, number 1"
            self._chat.refuse(f"There is no block {shortened(number)!r}: the answer has {there}.")
        else:
            place = number or places[-1]
            which = f", block {place} of {places[-1]}" if places[1:] else ""
            listing = listings[int(place) - 1]
            app = cast(AppOnTerminal, self._chat.screen.app)
            app.copy_to_clipboard(listing.code, f"{listing.described} copied{which}")

    # --- recording ----------------------------------------------------------------------------------------------------

    def action_record(self) -> None:
        if self._recorder.path is not None:
            if recorded := self._recorder.stop():
                self._recorded = recorded
                said = f"Recorded: {recorded}. /replay shows it, /export makes a page or a film."
                self._chat.notify(said, timeout=SECONDS_FOR_A_PATH)
        else:
            path = default_path(self._chat.session.conversation.model or "engine")
            try:
                self._recorder.start(path)
            except OSError as error:
                self._chat.refuse(f"{path} cannot be written: {error.strerror or error}.", severity="error")
            else:
                self._chat.notify(f"Recording to {path}, with the conversation so far. F7 ends it.")
        self.show_recording()

    def failed(self, error: OSError) -> None:
        """Report that the recording has ended early."""
        if self._chat.screen.is_running:
            left = self._recorder.left
            why = f"The recording has ended: {error.strerror or error}."
            self._chat.notify(f"{why} What was written before is in {left}." if left else why, severity="error")
            self.show_recording()

    def show_recording(self) -> None:
        self._view.recording.display = self._recorder.path is not None

    # --- replay -------------------------------------------------------------------------------------------------------

    def action_replay(self, file: str = "") -> None:
        """Replay a recording; without a name, the one just made, or else the latest.

        The chat below stays as it is.
        """
        if not file and self._recorder.path is not None:
            self._chat.refuse("The recording is under way: F7 ends it, and then /replay shows it.")
        elif path := Path(file).expanduser() if file else self._recorded:
            self._open(path)
        elif latest := latest_recording(recordings_folder()):
            self._open(latest, f"The latest of your recordings: {latest.name}")
        else:
            nothing = "Nothing has been recorded yet: F7 begins and ends a recording."
            self._chat.refuse(why_unread(recordings_folder()) or nothing)

    def _open(self, path: Path, which: str = "") -> None:
        self._chat.screen.run_worker(self._replay(path, self._chat.command, which), group="replay", exclusive=True)

    async def _replay(self, path: Path, command: str, which: str) -> None:
        """Replay a recording, with a message that names it. It is opened in a thread: the disk may be slow."""
        try:
            recording = await asyncio.to_thread(Recording, path, IDLE_SECONDS)
        except UnreadableRecording as error:
            self._chat.refuse(str(error), command, "error")
        except OSError as error:
            self._chat.refuse(f"{path} cannot be read: {error.strerror or error}.", command, "error")
        else:
            await self._chat.screen.app.push_screen(ReplayScreen(recording))
            if which:
                self._chat.notify(which)

    # --- export -------------------------------------------------------------------------------------------------------

    def action_export(self, argument: str = "") -> None:
        """Export the conversation for people without ladechat.

        Args:
            argument: the file and options, as `ladechat export` takes them after the recording; without a file, a page
                in the current folder is written.
        """
        events = self._recorder.conversation()
        try:
            words = shlex.split(argument)
        except ValueError:
            self._chat.refuse(UNPAIRED)
            return
        named = bool(words) and not words[0].startswith("-")
        if not named:
            words.insert(0, f"ladechat-{datetime.now():%Y-%m-%d-%H%M%S}.html")
        if in_page() and argument:
            self._chat.refuse(IN_PAGE)
        elif named and words[1:] and not words[1].startswith("-"):
            self._chat.refuse(ONE_FILE)
        elif named and not words[1:] and ending(Path(words[0])) not in FORMATS:
            self._chat.refuse(f"A file to export to has to end {ENDINGS}.")
        elif not events:
            self._chat.refuse("There is nothing to export yet: ask something first.")
        else:
            out = Path(words[0]).expanduser().absolute()
            less = ", without its beginning: of a long conversation the latest answers are kept"
            done = f"Exported: {out}{less * self._recorder.shortened}."
            if self._exports:
                self._chat.notify("It begins when the export before it has ended.")
            exporting = self._export(events, [str(out), *words[1:]], done, self._chat.command)
            self._exports.append(asyncio.create_task(exporting))

    async def _export(self, events: Sequence[Event], arguments: Sequence[str], done: str, command: str) -> None:
        """Export when it is its turn, and say so in the conversation."""
        async with self._one_at_a_time:
            self._show_export("exporting …")
            try:
                await export(events, arguments, lambda doing: self._show_export(f"exporting: {doing}"))
            except ExportFailed as error:
                if self._chat.screen.is_running:
                    self._chat.refuse(str(error), command, "error")
            else:
                self._chat.report(done)
            finally:
                del self._exports[0]
                if self._chat.screen.is_running:
                    self._show_export("")

    def _show_export(self, doing: str) -> None:
        more = len(self._exports) - 1
        self._view.show_export(f"{doing}, {more} more" if doing and more > 0 else doing)


# --- exports ----------------------------------------------------------------------------------------------------------


class ExportFailed(Exception):
    """The reason why there is no file, in a sentence."""


async def export(events: Sequence[Event], arguments: Sequence[str], progress: Callable[[str], None]) -> None:
    """Export these events, by way of a private temporary file.

    If it is cancelled, it ends the process first, and an unfinished file is deleted.

    Args:
        events: the events of a recording, its header first.
        arguments: the arguments of `ladechat export` after the recording.
        progress: called with the present state, as in "drawing 45%".

    Raises:
        ExportFailed: no file was written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="ladechat-", ignore_cleanup_errors=True) as folder:
            recording = Path(folder) / f"conversation{SUFFIX}"
            with recording.open("wb") as file:
                await asyncio.to_thread(file.writelines, map(encode, events))
            await _run([*COMMAND, str(recording), *arguments], progress)
    except OSError as error:
        where = tempfile.gettempdir()
        raise ExportFailed(f"Nothing is exported: {error.strerror or error}; make room in {where}.") from error


async def _run(command: Sequence[str], progress: Callable[[str], None]) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        limit=MAX_LINE_BYTES,
        env={**os.environ, PROGRESS_LINES: "1"},
        start_new_session=True,
    )
    assert process.stderr is not None
    why = "The export ended without a word; try another format."
    try:
        async for raw in process.stderr:
            line = raw.decode(errors="replace").strip()
            if sentence := FAILURE.match(line):
                why = sentence[1]
            elif len(line) <= MOST_OF_PROGRESS:
                progress(line)
        await process.wait()
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode:
        raise ExportFailed(why)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process as Ctrl+C would, so that it deletes its unfinished file."""
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.wait(), SECONDS_TO_LEAVE)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
