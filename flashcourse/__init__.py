"""flashcourse: an interactive FlashAttention course whose autograder reads the learner's own code."""

__version__ = "0.1.0"
