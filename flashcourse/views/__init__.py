"""What a learner sees: the tile player, the explorers, the figures."""
