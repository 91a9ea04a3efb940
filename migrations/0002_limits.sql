-- +goose Up

-- The limits that a message runs under: set when a person asks for higher ones, and at its end to
-- what they were. NULL is the agent's own, and of messages from before.
ALTER TABLE messages
    ADD COLUMN max_steps   integer CONSTRAINT messages_max_steps CHECK (max_steps > 0),
    ADD COLUMN max_minutes integer CONSTRAINT messages_max_minutes CHECK (max_minutes > 0),
    ADD COLUMN cost_source text    NOT NULL DEFAULT '' CONSTRAINT messages_cost_source CHECK (cost_source IN ('', 'provider', 'price', 'unknown'));

-- What was counted until now came from providers alone.
UPDATE messages SET cost_source = CASE WHEN cost_usd IS NULL THEN 'unknown' ELSE 'provider' END
WHERE role = 'user' AND prompt_tokens + completion_tokens > 0;

-- Sums of a session's money and of a month's.
CREATE INDEX messages_cost ON messages (session_id, started_at) WHERE cost_usd IS NOT NULL;
