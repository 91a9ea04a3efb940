-- +goose Up

-- The role is what an administrator gave on the people's page. Who is one by ADMIN_LOGINS is so by
-- the configuration alone, of which until now each sign-in left a copy here.
UPDATE users SET role = 'member';

-- stale_at is when GitHub said that something changed that has not been read anew.
ALTER TABLE installations
    ADD COLUMN missing  text[]  NOT NULL DEFAULT '{}',
    ADD COLUMN removed  boolean NOT NULL DEFAULT false,
    ADD COLUMN stale_at timestamptz;
CREATE INDEX installations_stale ON installations (stale_at) WHERE stale_at IS NOT NULL;

ALTER TABLE repositories ADD COLUMN stale_at timestamptz;
CREATE INDEX repositories_stale ON repositories (stale_at) WHERE stale_at IS NOT NULL;

ALTER TABLE user_tokens ADD COLUMN stale_at timestamptz;
CREATE INDEX user_tokens_stale ON user_tokens (stale_at) WHERE stale_at IS NOT NULL;

ALTER TABLE pull_requests ADD COLUMN stale_at timestamptz;
CREATE INDEX pull_requests_stale ON pull_requests (stale_at) WHERE stale_at IS NOT NULL;

-- What GitHub has delivered, so that the same delivery acts once. Its content is not kept: it is a
-- hint to read GitHub anew.
CREATE TABLE webhook_deliveries (
    guid            text        PRIMARY KEY CONSTRAINT webhook_deliveries_guid CHECK (octet_length(guid) BETWEEN 1 AND 100),
    event           text        NOT NULL,
    action          text        NOT NULL,
    installation_id bigint      NOT NULL DEFAULT 0,
    received_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX webhook_deliveries_received ON webhook_deliveries (received_at);

-- When something was last begun that one of many processes does at a time.
CREATE TABLE chores (
    name   text        PRIMARY KEY,
    ran_at timestamptz NOT NULL
);

CREATE INDEX audit_log_of_user ON audit_log (user_id, created_at DESC);
