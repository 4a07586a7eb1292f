"""Labels: what people say of the answers that arms would have given in a log, and what follows for all of them.

`hit_pairs` reads which turns an arm answered from memory, and gives each turn its random number. `allocation` chooses
the turns that are judged next, `sheets` writes them for people, `rater_labels` reads what they said. `machine_labels`
are those of programs, which may be wrong. `label_shares` estimates from both the wrong answers among all hits,
`price_decision` whether hits pay; `labelled_run` does all of it for a run.
"""
