WORD = "found"
