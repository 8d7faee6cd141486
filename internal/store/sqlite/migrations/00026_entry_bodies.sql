-- Bodies that entries of the ledger name, rather than rows: what models were asked and answered,
-- texts of policies and prompts of agents. A body stays while there is such a row for it.

-- +goose Up
CREATE TABLE entry_bodies (
	tenant     TEXT    NOT NULL,
	hash       TEXT    NOT NULL,
	subject    TEXT    NOT NULL, -- of the entry: a call, policy:NAME or agent:ID
	principal  TEXT    NOT NULL, -- for whom a model was asked, as the ledger names them; otherwise empty
	expires_at INTEGER NOT NULL, -- 0 for never
	PRIMARY KEY (tenant, hash, subject, principal)
);
CREATE INDEX entry_bodies_subject ON entry_bodies (tenant, subject);
CREATE INDEX entry_bodies_principal ON entry_bodies (tenant, principal);
CREATE INDEX entry_bodies_expire ON entry_bodies (tenant, expires_at) WHERE expires_at <> 0;

-- Of the entries that there are, those whose call was not removed.
INSERT INTO entry_bodies (tenant, hash, subject, principal, expires_at)
SELECT DISTINCT b.tenant, b.hash, n.subject, n.principal, b.expires_at
FROM (
	SELECT tenant, subject, principal, json_extract(body, '$.prompt_hash') AS hash FROM entries WHERE json_valid(body) AND kind = 'model.called'
	UNION ALL SELECT tenant, subject, principal, json_extract(body, '$.answer_hash') FROM entries WHERE json_valid(body) AND kind = 'model.called'
	UNION ALL SELECT tenant, 'policy:' || subject, '', json_extract(body, '$.text_hash') FROM entries WHERE json_valid(body) AND kind = 'policy.put'
	UNION ALL SELECT tenant, 'agent:' || subject, '', json_extract(body, '$.prompt_hash') FROM entries WHERE json_valid(body) AND kind GLOB 'agent.*'
) n JOIN bodies b ON b.tenant = n.tenant AND b.hash = n.hash
WHERE NOT EXISTS (SELECT 1 FROM calls c WHERE c.tenant = n.tenant AND c.id = n.subject AND c.removed_at <> 0);
