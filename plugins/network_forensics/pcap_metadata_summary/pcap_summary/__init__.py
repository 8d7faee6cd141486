"""The program that reads captures, and what it is started for."""
