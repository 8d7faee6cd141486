-- What was removed of calls and plans, and whose data is to be erased.
-- +goose Up
ALTER TABLE calls ADD COLUMN removed_at BIGINT NOT NULL DEFAULT 0; -- when its bodies were removed
ALTER TABLE calls ADD COLUMN removed_by TEXT COLLATE "C" NOT NULL DEFAULT ''; -- retention or erasure
ALTER TABLE plans ADD COLUMN removed_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX calls_ended ON calls (tenant, updated_at) WHERE removed_at = 0 AND state IN ('succeeded', 'failed');
CREATE INDEX calls_settled ON calls (tenant, updated_at) WHERE state IN ('succeeded', 'failed') AND substr(key, 1, 2) = 'c:';
CREATE INDEX plans_ended ON plans (tenant, updated_at) WHERE removed_at = 0 AND state IN ('succeeded', 'failed', 'cancelled');

-- Who needs a body, by its hash: one that another row names stays.
CREATE INDEX calls_request ON calls (tenant, request_hash) WHERE removed_at = 0 AND request_hash <> '';
CREATE INDEX calls_result ON calls (tenant, result_hash) WHERE removed_at = 0 AND result_hash <> '';
CREATE INDEX effects_response ON effects (tenant, response_hash) WHERE response_hash <> '';
CREATE INDEX approvals_preview ON approvals (tenant, preview_hash) WHERE preview_hash <> '';
CREATE INDEX plans_request ON plans (tenant, request_hash) WHERE removed_at = 0;
CREATE INDEX bodies_expire ON bodies (expires_at) WHERE expires_at <> 0;

-- What is looked for by its age, and the calls of a session.
CREATE INDEX deliveries_at ON deliveries (tenant, at);
CREATE INDEX calls_session ON calls (tenant, session_id) WHERE session_id <> '';

CREATE TABLE erasures (
	tenant    TEXT COLLATE "C" NOT NULL,
	id        TEXT COLLATE "C" NOT NULL,
	principal TEXT COLLATE "C" NOT NULL, -- as the ledger names it
	asked_by  TEXT COLLATE "C" NOT NULL,
	asked_at  BIGINT NOT NULL,
	peers     TEXT COLLATE "C" NOT NULL, -- a JSON array; as channels name them
	counts    TEXT COLLATE "C" NOT NULL, -- JSON
	done_at   BIGINT NOT NULL,
	PRIMARY KEY (tenant, id)
);

ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenants ON erasures USING (tenant = (SELECT current_setting('mortise.tenant', true)) OR (SELECT current_setting('mortise.tenant', true)) = '*');
