-- +goose Up

-- What a person chose for an attempt: a draft, another base, and what becomes of a pull request that was
-- closed. cancel_requested_at asks a worker to give up before it sends anything.
ALTER TABLE publications
	ADD COLUMN draft               boolean     NOT NULL DEFAULT false,
	ADD COLUMN base                text        NOT NULL DEFAULT '',
	ADD COLUMN choice              text        NOT NULL DEFAULT '' CONSTRAINT publications_choice CHECK (choice IN ('', 'reopen', 'new')),
	ADD COLUMN cancel_requested_at timestamptz;

-- base is '' for pull requests from before; behind counts commits of the base that the branch has not.
ALTER TABLE pull_requests
	ADD COLUMN draft  boolean NOT NULL DEFAULT false,
	ADD COLUMN base   text    NOT NULL DEFAULT '',
	ADD COLUMN behind integer NOT NULL DEFAULT 0;

-- Paths that a person took into a session's publishes, or out of them, against the rules.
CREATE TABLE publish_choices (
	session_id uuid    NOT NULL REFERENCES chat_sessions ON DELETE CASCADE,
	path       text    NOT NULL,
	included   boolean NOT NULL,
	PRIMARY KEY (session_id, path)
);

-- +goose Down
DROP TABLE publish_choices;
ALTER TABLE pull_requests DROP COLUMN draft, DROP COLUMN base, DROP COLUMN behind;
ALTER TABLE publications DROP COLUMN draft, DROP COLUMN base, DROP COLUMN choice, DROP COLUMN cancel_requested_at;
