"""Users whose requests need what they alone know: they tell facts, change them, and correct wrong answers.

README.md has the types and the data flow.
"""
