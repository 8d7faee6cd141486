package store

import (
	"crypto/hmac"
	"slices"
)

// SignSession returns the MAC of what a session decides: whose it is, and what its
// labels are.
func (k *Key) SignSession(row *SessionRow) string {
	h := newRowHash("session")
	h.text(row.Tenant, row.ID, row.Kind, row.Owner)
	h.number(row.CreatedAt.UnixMicro(), row.Artifacts)
	h.text(row.Labels...)
	return k.mac(keptDomain, 0, 0, h.sum())
}

// SignArtifact returns the MAC of an artifact: of all that is known of it but where
// its bytes are, which have its hash wherever they are.
func (k *Key) SignArtifact(row *ArtifactRow) string {
	h := newRowHash("artifact")
	h.text(row.Tenant, row.SessionID, row.ID, row.Type, row.Name, row.SHA256, row.SourceTool, row.SourceCall, row.Metadata, row.StorageURI)
	h.number(row.N, row.Size, row.CreatedAt.UnixMicro(), int64(len(row.Parents)), int64(len(row.Labels)))
	h.text(slices.Concat(row.Parents, row.Labels)...)
	return k.mac(keptDomain, 0, 0, h.sum())
}

// CheckSessions refuses a session that is another's than the host wrote, or has
// other labels.
func (k *Key) CheckSessions(rows ...SessionRow) error {
	for i := range rows {
		if !hmac.Equal([]byte(rows[i].MAC), []byte(k.SignSession(&rows[i]))) {
			return &AuthorityError{"sessions"}
		}
	}
	return nil
}

// CheckArtifacts refuses an artifact that is not as the host registered it.
func (k *Key) CheckArtifacts(rows ...ArtifactRow) error {
	for i := range rows {
		if !hmac.Equal([]byte(rows[i].MAC), []byte(k.SignArtifact(&rows[i]))) {
			return &AuthorityError{"artifacts"}
		}
	}
	return nil
}
