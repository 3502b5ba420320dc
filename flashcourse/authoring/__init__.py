"""From a lesson written once to the instructor's and the student's notebooks in both languages."""
