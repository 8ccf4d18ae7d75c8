"""What is written on a terminal outside of the app: text that steers nothing."""

VISIBLE_CONTROLS = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"},
    # What turns the direction of writing around, and with it the meaning, and what breaks lines out of sight.
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)},
}
"""Text of a model, a hub, a file or a command line never reaches a terminal raw, except for line ends and tabs."""


def shown(text: str) -> str:
    """`text` with what would steer a terminal made visible."""
    return text.translate(VISIBLE_CONTROLS)
