"""What keeps a class, or the whole machine, from being graded."""


class GradingError(RuntimeError):
    """Its message says what to do; a command shows it and ends."""
