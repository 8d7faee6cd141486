-- Tenants beside the one that the configuration names, and the plugins that each has.

-- +goose Up
CREATE TABLE tenants (
	name        TEXT    NOT NULL,
	created_by  TEXT    NOT NULL,
	created_at  INTEGER NOT NULL,
	disabled_at INTEGER NOT NULL,
	PRIMARY KEY (name)
);

CREATE TABLE tenant_plugins (
	tenant         TEXT    NOT NULL,
	name           TEXT    NOT NULL,
	version        TEXT    NOT NULL,
	package_digest TEXT    NOT NULL,
	path           TEXT    NOT NULL,
	manifest       TEXT    NOT NULL, -- JSON
	state          TEXT    NOT NULL,
	approved_by    TEXT    NOT NULL,
	dev            INTEGER NOT NULL,
	registered_at  INTEGER NOT NULL,
	PRIMARY KEY (tenant, name, version)
);
CREATE INDEX tenant_plugins_package ON tenant_plugins (package_digest);
