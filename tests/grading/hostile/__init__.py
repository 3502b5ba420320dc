"""Submissions that try to get points, secrets, other people's work, or to break the batch."""
