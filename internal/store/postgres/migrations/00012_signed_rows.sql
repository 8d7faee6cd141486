-- What the head of a chain signs beside its entry: the rows that decide authority.

-- +goose Up
ALTER TABLE chains ADD COLUMN authority TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN mac TEXT COLLATE "C" NOT NULL DEFAULT ''; -- of one that was used
CREATE INDEX approvals_live ON approvals (tenant, id) WHERE state IN ('open', 'approved');
