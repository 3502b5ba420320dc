"""What a class did in one lesson: a page for the teacher, and marks for the learning platform.

- `gather`    read what collecting and grading wrote: one `Work` a student
- `insight`   what the numbers say: success by exercise, misconceptions, who needs a human eye
- `charts`    the pictures, as SVG
- `page`      the HTML page
- `exports`   CSV, and what Moodle and Canvas import
"""
