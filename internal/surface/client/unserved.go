package client

// The nouns that commands ask for in this process alone, so far.

// Agents implements [Host].
func (r *remote) Agents() Agents { return nil }

// Feeds implements [Host].
func (r *remote) Feeds() Feeds { return nil }

// Knowledge implements [Host].
func (r *remote) Knowledge() Knowledge { return nil }
