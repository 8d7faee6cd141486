-- Bodies that entries of the ledger name, rather than rows: what models were asked and answered,
-- texts of policies and prompts of agents. A body stays while there is such a row for it.

-- +goose Up
CREATE TABLE entry_bodies (
	tenant     TEXT COLLATE "C" NOT NULL,
	hash       TEXT COLLATE "C" NOT NULL,
	subject    TEXT COLLATE "C" NOT NULL, -- of the entry: a call, policy:NAME or agent:ID
	principal  TEXT COLLATE "C" NOT NULL, -- for whom a model was asked, as the ledger names them; otherwise empty
	expires_at BIGINT NOT NULL, -- 0 for never
	PRIMARY KEY (tenant, hash, subject, principal)
);
CREATE INDEX entry_bodies_subject ON entry_bodies (tenant, subject);
CREATE INDEX entry_bodies_principal ON entry_bodies (tenant, principal);
CREATE INDEX entry_bodies_expire ON entry_bodies (tenant, expires_at) WHERE expires_at <> 0;

-- Of the entries that there are, those whose call was not removed.
INSERT INTO entry_bodies (tenant, hash, subject, principal, expires_at)
SELECT DISTINCT b.tenant, b.hash, n.subject, n.principal, b.expires_at
FROM (
	SELECT tenant, subject, principal, body::json ->> 'prompt_hash' AS hash FROM entries WHERE kind = 'model.called'
	UNION ALL SELECT tenant, subject, principal, body::json ->> 'answer_hash' FROM entries WHERE kind = 'model.called'
	UNION ALL SELECT tenant, 'policy:' || subject, '', body::json ->> 'text_hash' FROM entries WHERE kind = 'policy.put'
	UNION ALL SELECT tenant, 'agent:' || subject, '', body::json ->> 'prompt_hash' FROM entries WHERE kind LIKE 'agent.%'
) n JOIN bodies b ON b.tenant = n.tenant AND b.hash = n.hash
WHERE NOT EXISTS (SELECT 1 FROM calls c WHERE c.tenant = n.tenant AND c.id = n.subject AND c.removed_at <> 0);

ALTER TABLE entry_bodies ENABLE ROW LEVEL SECURITY;
ALTER TABLE entry_bodies FORCE ROW LEVEL SECURITY;
CREATE POLICY tenants ON entry_bodies USING (tenant = (SELECT current_setting('mortise.tenant', true)) OR (SELECT current_setting('mortise.tenant', true)) = '*');
