package client

// The nouns that commands ask for in this process alone, so far.

// Accounts implements [Host].
func (r *remote) Accounts() Accounts { return nil }

// Admin implements [Host].
func (r *remote) Admin() Admin { return nil }

// Agents implements [Host].
func (r *remote) Agents() Agents { return nil }

// Feeds implements [Host].
func (r *remote) Feeds() Feeds { return nil }

// Identities implements [Host].
func (r *remote) Identities() Identities { return nil }

// Knowledge implements [Host].
func (r *remote) Knowledge() Knowledge { return nil }

// Models implements [Host].
func (r *remote) Models() Models { return nil }

// Policies implements [Host].
func (r *remote) Policies() Policies { return nil }

// References implements [Host].
func (r *remote) References() References { return nil }

// Secrets implements [Host].
func (r *remote) Secrets() Secrets { return nil }

// Tokens implements [Host].
func (r *remote) Tokens() Tokens { return nil }

// Users implements [Host].
func (r *remote) Users() Users { return nil }
