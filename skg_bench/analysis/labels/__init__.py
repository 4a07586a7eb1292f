"""Labels: what people say of answers that arms would have given in a log, or gave to tasks, and what follows from it.

`hit_pairs` reads which turns an arm answered from memory, and gives each turn its random number. `allocation` chooses
the turns that are judged next, `sheets` writes them for people, `rater_labels` reads what they said. `machine_labels`
are those of programs, which may be wrong. `label_shares` estimates from both the wrong answers among all hits,
`price_decision` whether hits pay; `labelled_run` does all of it for a run. `word_pairs`, `word_differences` and
`word_table` compare arms by the judged words of a run on tasks.
"""
