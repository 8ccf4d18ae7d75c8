"""What every test runs with: no network, no settings of the person who runs them, no clock over hypothesis."""

import gc
import os
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ladechat.garbage import RARELY
from tests.parsed_styles import parse_once

gc.disable()  # until the tests are imported and collected, none of which is garbage

# A model that is not on this machine is an error at once, never a download. Read when the libraries are imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["TRITON_INTERPRET"] = "1"  # kernels for GPUs run on the CPU
os.environ["CXX"] = "no compiler"  # engines that tests start shall not compile in the background
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what tests start compiles the package once, and not each time
sys.dont_write_bytecode = False  # and workers compile the tests once
os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch's threads wait busily for cores that others have
for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TEXTUAL_COLOR_SYSTEM"):
    os.environ.pop(name, None)
os.environ["COLORTERM"] = "truecolor"  # whatever terminal the tests run in; those about fewer colours say so
os.environ["TERM"] = "xterm-256color"

settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("short", settings.get_profile("full"), max_examples=40)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--shuffle 7` runs the tests in an order of dice; the same number is the same order."""
    parser.addoption("--shuffle", metavar="SEED", help="run folders, files and tests in this seed's random order")


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"random order: --shuffle {seed}"


def pytest_collection(session: pytest.Session) -> None:
    """Have each worker begin with other files: half of its time here is for the asserts, which are rewritten once.

    A worker that comes to a file later reads what was saved. What cannot be imported is reported when it is collected.
    """
    number, workers = (int(os.environ.get(f"PYTEST_XDIST_WORKER{name}", "0").lstrip("gw")) for name in ("", "_COUNT"))
    if number and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        root = session.config.rootpath
        files = sorted(path.relative_to(root) for path in Path(__file__).parent.rglob("test_*.py"))
        for path in files[len(files) * number // workers :]:
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(path.with_suffix("").parts))


def pytest_collection_finish() -> None:
    """What was imported and collected is never garbage: no test spends its time on looking through it."""
    gc.freeze()
    gc.set_threshold(*RARELY)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle folders, the files of each, and the tests of each: fixtures of a file are made once all the same."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        items.sort(key=lambda item: [random.Random(seed + node.nodeid).random() for node in item.listchain()])


def pytest_configure(config: pytest.Config) -> None:
    """The long run takes as many examples as hypothesis does by itself."""
    settings.load_profile("short" if config.option.markexpr == "not full" else "full")


@pytest.fixture
def garbage_as_before() -> Iterator[None]:
    """After the test garbage is looked for as before it, and still not in what was imported and collected."""
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    gc.callbacks.clear()  # an app that ran in this process may have left its own
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*thresholds)
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Logs and state that ladechat writes go to a folder of this run, in every process that a test starts."""
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        os.environ[name] = str(home)


@pytest.fixture(scope="session", autouse=True)
def _styles_parsed_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        parse_once(patched)
        yield
