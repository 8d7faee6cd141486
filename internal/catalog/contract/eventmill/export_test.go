package eventmill

// Spellings returns how many codes have a spelling.
func Spellings() int { return len(spellings) }
