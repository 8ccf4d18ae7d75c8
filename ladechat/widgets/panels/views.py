"""The views of a step beside the conversation: all panels, or one of them first."""

from enum import StrEnum


class View(StrEnum):
    """What is shown of a step: the panels (with mask and biography if there is room), or one of these two first."""

    PANELS = "panels"
    MASK = "mask"
    BIOGRAPHY = "biography"


FOLLOWING = {View.PANELS: View.MASK, View.MASK: View.BIOGRAPHY, View.BIOGRAPHY: View.PANELS}
WAY_BACK = {View.PANELS: "", View.MASK: "F10, F10: all panels", View.BIOGRAPHY: "F10: all panels"}
"""What leads to all panels."""
LEFT_OUT = {View.PANELS: ("biography",), View.MASK: ("biography", "speed"), View.BIOGRAPHY: ("pool", "speed")}
"""The panels of each view that are shown only if there is room."""
