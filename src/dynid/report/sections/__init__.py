"""Sections of the report that answer: can I trust the result, what is wrong, what is the next step?"""
