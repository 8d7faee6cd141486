module similarity

go 1.20
