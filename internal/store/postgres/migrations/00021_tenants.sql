-- Tenants beside the one that the configuration names, and the plugins that each has.

-- +goose Up
CREATE TABLE tenants (
	name        TEXT COLLATE "C" NOT NULL,
	created_by  TEXT COLLATE "C" NOT NULL,
	created_at  BIGINT NOT NULL,
	disabled_at BIGINT NOT NULL,
	PRIMARY KEY (name)
);

CREATE TABLE tenant_plugins (
	tenant         TEXT COLLATE "C" NOT NULL,
	name           TEXT COLLATE "C" NOT NULL,
	version        TEXT COLLATE "C" NOT NULL,
	package_digest TEXT COLLATE "C" NOT NULL,
	path           TEXT COLLATE "C" NOT NULL,
	manifest       TEXT COLLATE "C" NOT NULL, -- JSON
	state          TEXT COLLATE "C" NOT NULL,
	approved_by    TEXT COLLATE "C" NOT NULL,
	dev            BIGINT NOT NULL,
	registered_at  BIGINT NOT NULL,
	PRIMARY KEY (tenant, name, version)
);
CREATE INDEX tenant_plugins_package ON tenant_plugins (package_digest);

-- Each table with a column for the tenant shows the rows of one tenant alone: of the one
-- that mortise.tenant names, of all where it is *, of none where it is not set. That holds
-- for the owner of the tables too.
-- +goose StatementBegin
DO $$
DECLARE
	t record;
BEGIN
	FOR t IN SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attname = 'tenant' AND NOT a.attisdropped
	LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t.name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t.name);
		EXECUTE format('CREATE POLICY tenants ON %I USING (tenant = (SELECT current_setting(''mortise.tenant'', true)) OR (SELECT current_setting(''mortise.tenant'', true)) = ''*'')', t.name);
	END LOOP;
END $$;
-- +goose StatementEnd
