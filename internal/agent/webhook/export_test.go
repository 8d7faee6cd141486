package webhook

// MAC is what senders compute.
func MAC(key []byte, text string) []byte { return new(work).mac(key, text) }
