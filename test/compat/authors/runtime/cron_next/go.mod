module cronnext

go 1.20
