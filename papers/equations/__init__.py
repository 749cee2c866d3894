"""Printed equations of the papers, evaluated on random bodies and motions and compared with their definitions."""
