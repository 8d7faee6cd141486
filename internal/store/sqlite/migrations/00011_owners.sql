-- Whose a session is: the principal that began it, as its entry says.

-- +goose Up
ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE sessions SET owner = COALESCE((SELECT e.principal FROM entries e
	WHERE e.subject = sessions.id AND e.tenant = sessions.tenant AND e.kind = 'session.created' ORDER BY e.chain, e.seq LIMIT 1), '');
