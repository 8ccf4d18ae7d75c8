"""The weights of linear layers in the order in which the kernels read them, as exact numbers or as integers.

Numbers in bfloat16 lie in tiles where the processor multiplies these (AMX), see `csrc/tiles.h`. Integers lie in groups
of `GROUPED` inputs. The weights of a column in a group share a scale: weight = scale · integer. See `csrc/integers.h`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ladechat.model.kernels.large_pages import LargePages

COLUMNS = 32
"""The columns in a block of packed weights, as in `csrc/registers.h`."""

GROUPED = 32
"""The inputs in a group of integers, as in `csrc/integers.h`."""

FLOATS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
INTEGERS = {"int8": 8, "int4": 4}
"""The bits of an integer."""

TILED = "bfloat16 in tiles"
DEPTH = 32
"""The inputs of a tile, as in `csrc/tiles.h`: 16 lines of two for each of 16 columns."""

KINDS = (*FLOATS, *INTEGERS, TILED)
"""What weights are packed as, numbered as in `csrc/linear.h`."""

COLUMNS_AT_ONCE = 1024
"""The columns unpacked at a time."""

HELD_AT_ONCE = 1 << 16
"""The weights compared with their 16-bit copies at a time."""


@dataclass(frozen=True)
class Packed:
    """The packed weights of a linear layer.

    Attributes:
        data: (blocks, inner, COLUMNS) numbers, or (blocks, groups, bytes of a group) uint8, or (blocks, steps, 2, 16,
            16, 2) in tiles; the last block, group and step are padded with zeros.
        kind: one of `KINDS`.
        columns: the size of the layer's output.
        inner: the size of its input.
    """

    data: Tensor
    kind: str
    columns: int
    inner: int

    def weight(self) -> Tensor:
        """Return the (columns, inner) float32 weights, which integers stand for only roughly."""
        return torch.cat([self.rows(some) for some in torch.split(torch.arange(self.columns), COLUMNS_AT_ONCE)])

    def rows(self, columns: Tensor) -> Tensor:
        """Return the weights (…, inner) float32 of columns (…) int64, as an embedding does."""
        block, column = columns // COLUMNS, columns % COLUMNS
        if self.kind in FLOATS:
            return self.data[block, :, column].float()
        if self.kind == TILED:
            in_tiles: Tensor = self.data[block, :, column // 16, :, column % 16].float()
            return in_tiles.flatten(-3)[..., : self.inner]
        scales = self.data[..., : 2 * COLUMNS].view(torch.bfloat16)[block, :, column].float()
        steps = self.data[..., 2 * COLUMNS :].view(*self.data.shape[:2], -1, COLUMNS, 4)
        fours = steps[block, :, :, column]
        if self.kind == "int4":  # of a byte, the lower four bits belong to the first half of the inputs
            fours = torch.cat([fours & 15, fours >> 4], dim=-2)
        integers = fours.flatten(-2).float() - 2 ** (INTEGERS[self.kind] - 1)
        rows: Tensor = (integers * scales[..., None]).flatten(-2)
        return rows[..., : self.inner]


def pack(weight: Tensor, tiles: bool = False, room: LargePages | None = None) -> Packed:
    """Return (columns, inner) weights packed as numbers; those in bfloat16 in tiles, if the processor has `tiles`.

    They are in 16 bits where these hold every number exactly, as for a checkpoint saved in 16 bits: half the memory to
    read, and the same sums. `room` gives the memory for them.
    """
    room, (columns, inner) = room or LargePages(), weight.shape
    kind = next((kind for kind in ("bfloat16", "float16") if _holds(FLOATS[kind], weight)), "float32")
    if tiles and kind == "bfloat16":
        return Packed(_in_tiles(weight, room), TILED, columns, inner)
    packed = room.empty((-(-columns // COLUMNS), inner, COLUMNS), FLOATS[kind])
    whole = columns // COLUMNS
    packed[:whole] = weight[: whole * COLUMNS].reshape(whole, COLUMNS, inner).transpose(1, 2)
    if columns % COLUMNS:
        packed[whole].zero_()[:, : columns % COLUMNS] = weight[whole * COLUMNS :].t()
    return Packed(packed, kind, columns, inner)


def _in_tiles(weight: Tensor, room: LargePages) -> Tensor:
    columns, inner = weight.shape
    lacking = (0, -inner % DEPTH, 0, -columns % COLUMNS)
    padded = torch.nn.functional.pad(weight, lacking) if any(lacking) else weight
    tiles = padded.reshape(-(-columns // COLUMNS), 2, 16, -(-inner // DEPTH), 16, 2).permute(0, 3, 1, 4, 2, 5)
    return room.empty(tiles.shape, torch.bfloat16).copy_(tiles)


def room_for_integers(columns: int, inner: int, kind: str, room: LargePages | None) -> Packed:
    """Return uninitialised memory for weights packed as integers, which the kernels' library fills."""
    bytes_of_group = COLUMNS * (torch.bfloat16.itemsize + GROUPED * INTEGERS[kind] // 8)
    data = (room or LargePages()).empty((-(-columns // COLUMNS), -(-inner // GROUPED), bytes_of_group), torch.uint8)
    return Packed(data, kind, columns, inner)


def _holds(short: torch.dtype, weight: Tensor) -> bool:
    """Return whether a type holds all weights exactly. Compares some rows at a time, to stay in the CPU's cache."""
    parts = torch.split(weight, max(1, HELD_AT_ONCE // weight.shape[1]))
    return all(torch.equal(rows.to(short).to(rows.dtype), rows) for rows in parts)
