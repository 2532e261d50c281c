"""Colours and markers by which clusters are told apart."""

from __future__ import annotations

# Okabe and Ito's palette, told apart by readers with any kind of colour vision, without its
# yellow, too faint on white, and its vermilion, kept for the cannot-links; then darker tones.
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#7F7F7F",
    "#8C5A2B",
    "#490092",
    "#A8B400",
    "#004949",
    "#920000",
)
# Colours and markers have coprime counts, so their combination repeats only after 110 clusters.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")

MUST_COLOUR = "#222222"
CANNOT_COLOUR = "#D55E00"
COST_COLOUR = "#0072B2"
BOUND_COLOUR = "#D55E00"


def colour_of(cluster: int) -> str:
    """Return the colour of a cluster."""
    return COLOURS[cluster % len(COLOURS)]


def marker_of(cluster: int) -> str:
    """Return the marker of a cluster, in matplotlib's letters."""
    return MARKERS[cluster % len(MARKERS)]
