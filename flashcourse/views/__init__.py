"""What a learner sees: the tile player, the explorers, the figures."""

from flashcourse.later import load

_EXPLORERS = {
    "online_softmax_explorer": "flashcourse.views.online_softmax",
    "memory_wall_explorer": "flashcourse.views.memory_wall",
    "traffic_explorer": "flashcourse.views.traffic",
    "explore_tiles": "flashcourse.views.controls",
}


def __getattr__(name: str) -> object:
    """The explorers when they are asked for: only they need ipywidgets."""
    return load(__name__, _EXPLORERS, name)
