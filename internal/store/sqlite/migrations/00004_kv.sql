-- What plugins keep for themselves, and secrets.

-- +goose Up
CREATE TABLE kv (
	tenant     TEXT    NOT NULL,
	owner      TEXT    NOT NULL, -- a plugin
	scope      TEXT    NOT NULL, -- for whom it keeps this
	namespace  TEXT    NOT NULL,
	key        TEXT    NOT NULL,
	value      BLOB    NOT NULL,
	labels     TEXT    NOT NULL, -- a JSON array
	expires_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, owner, scope, namespace, key)
);

-- What secrets are encrypted with, itself encrypted with a key that is kept
-- outside the database. The last is the one that is used.
CREATE TABLE secret_keys (
	n          INTEGER NOT NULL PRIMARY KEY, -- from 1
	master     TEXT    NOT NULL, -- the fingerprint of the key outside
	wrapped    BLOB    NOT NULL,
	created_at INTEGER NOT NULL
);

CREATE TABLE secrets (
	tenant     TEXT    NOT NULL,
	owner      TEXT    NOT NULL, -- a plugin, or * for all
	scope      TEXT    NOT NULL, -- user, system
	subject    TEXT    NOT NULL, -- the user; empty for the system
	name       TEXT    NOT NULL,
	ciphertext BLOB    NOT NULL,
	key_id     INTEGER NOT NULL, -- the n of its key
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, owner, scope, subject, name)
);
CREATE INDEX secrets_keys ON secrets (key_id);

CREATE INDEX identities_principal ON identities (tenant, principal_type, principal_id);
