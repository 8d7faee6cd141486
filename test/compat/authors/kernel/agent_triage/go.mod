module triage

go 1.20
