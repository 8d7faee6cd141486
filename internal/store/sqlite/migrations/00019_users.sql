-- People: the identities that are theirs, and the browsers in which they are signed in.

-- +goose Up
CREATE TABLE users (
	tenant         TEXT    NOT NULL,
	id             TEXT    NOT NULL,
	principal_type TEXT    NOT NULL,
	principal_id   TEXT    NOT NULL,
	identities     TEXT    NOT NULL, -- a JSON array
	invite_hash    TEXT    NOT NULL, -- of the secret of an invitation
	invite_expires INTEGER NOT NULL,
	created_by     TEXT    NOT NULL,
	created_at     INTEGER NOT NULL,
	disabled_at    INTEGER NOT NULL,
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX users_principal ON users (tenant, principal_type, principal_id);
CREATE INDEX users_newest ON users (tenant, id);

CREATE TABLE browser_sessions (
	tenant       TEXT    NOT NULL,
	id           TEXT    NOT NULL,
	hash         TEXT    NOT NULL, -- of the secret
	user_id      TEXT    NOT NULL,
	asker        TEXT    NOT NULL, -- the identity that signed in
	created_at   INTEGER NOT NULL,
	signed_in_at INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	used_at      INTEGER NOT NULL,
	used_from    TEXT    NOT NULL,
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX browser_sessions_hash ON browser_sessions (hash);
CREATE INDEX browser_sessions_newest ON browser_sessions (tenant, id);
