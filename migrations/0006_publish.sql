-- +goose Up
-- work_commit: the commit that holds the session's own tree and lies in the pushed one, from which the
-- next three-way merge begins. conflicts: paths in which pushes of others and the session's work
-- differ; conflict_patch: what the others changed there, for the message that asks the agent; waits: how
-- often the attempt has waited for a rate limit.
ALTER TABLE publications
	ADD COLUMN work_commit    text  NOT NULL DEFAULT '',
	ADD COLUMN conflicts      jsonb NOT NULL DEFAULT '[]',
	ADD COLUMN conflict_patch text  NOT NULL DEFAULT '',
	ADD COLUMN waits          integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE publications DROP COLUMN work_commit, DROP COLUMN conflicts, DROP COLUMN conflict_patch, DROP COLUMN waits;
