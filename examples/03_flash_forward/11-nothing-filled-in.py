# ---
# edition: en
# saved_by: jupyter
# outcome: unfinished
# marks: {test-todo1: 0, test-todo2: 0, test-todo3: 0, test-todo4: 0, test-todo5: 0, test-todo6: 0, test-whole: 0, test-tiling: 0, test-stability: 0}
# why: >-
#   The answer cell as it was handed out.
# ---
