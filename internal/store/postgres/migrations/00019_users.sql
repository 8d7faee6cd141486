-- People: the identities that are theirs, and the browsers in which they are signed in.

-- +goose Up
CREATE TABLE users (
	tenant         TEXT COLLATE "C" NOT NULL,
	id             TEXT COLLATE "C" NOT NULL,
	principal_type TEXT COLLATE "C" NOT NULL,
	principal_id   TEXT COLLATE "C" NOT NULL,
	identities     TEXT COLLATE "C" NOT NULL, -- a JSON array
	invite_hash    TEXT COLLATE "C" NOT NULL, -- of the secret of an invitation
	invite_expires BIGINT NOT NULL,
	created_by     TEXT COLLATE "C" NOT NULL,
	created_at     BIGINT NOT NULL,
	disabled_at    BIGINT NOT NULL,
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX users_principal ON users (tenant, principal_type, principal_id);
CREATE INDEX users_newest ON users (tenant, id);

CREATE TABLE browser_sessions (
	tenant       TEXT COLLATE "C" NOT NULL,
	id           TEXT COLLATE "C" NOT NULL,
	hash         TEXT COLLATE "C" NOT NULL, -- of the secret
	user_id      TEXT COLLATE "C" NOT NULL,
	asker        TEXT COLLATE "C" NOT NULL, -- the identity that signed in
	created_at   BIGINT NOT NULL,
	signed_in_at BIGINT NOT NULL,
	expires_at   BIGINT NOT NULL,
	used_at      BIGINT NOT NULL,
	used_from    TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX browser_sessions_hash ON browser_sessions (hash);
CREATE INDEX browser_sessions_newest ON browser_sessions (tenant, id);
