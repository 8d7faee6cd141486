module filehash

go 1.20
