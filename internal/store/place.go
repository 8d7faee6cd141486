package store

// BodyPlace is where the body of a hash is kept.
func BodyPlace(tenant, hash string) []string { return []string{"body", tenant, hash} }

// KVPlace is where the value of a key is kept.
func KVPlace(k KVKey) []string {
	return []string{"kv", k.Tenant, k.Owner, k.Scope, k.Namespace, k.Key}
}

// ArtifactPlace is where the bytes of an artifact are kept.
func ArtifactPlace(tenant, session, id string) []string {
	return []string{"artifact", tenant, session, id}
}
