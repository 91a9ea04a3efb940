-- +goose Up

-- What a session's sandbox may reach, frozen when it begins. Sessions from before had no network and
-- keep none.
ALTER TABLE chat_sessions
    ADD COLUMN egress_mode text NOT NULL DEFAULT 'none' CONSTRAINT chat_sessions_egress_mode CHECK (egress_mode IN ('open', 'allowlist', 'none'));
ALTER TABLE chat_sessions ALTER COLUMN egress_mode DROP DEFAULT;

-- NULL: the operator's EGRESS_MODE; else a stricter one that an admin chose.
ALTER TABLE repository_settings
    ADD COLUMN egress_mode text CONSTRAINT repository_settings_egress_mode CHECK (egress_mode IN ('open', 'allowlist', 'none'));

-- The repository's list. A row a host, so that two people who add at the same moment both succeed,
-- and each entry says who answers for it.
CREATE TABLE repository_hosts (
    repository_id bigint      NOT NULL REFERENCES repositories ON DELETE CASCADE,
    host          text        NOT NULL CONSTRAINT repository_hosts_host CHECK (octet_length(host) BETWEEN 1 AND 255),
    added_by      uuid        REFERENCES users ON DELETE SET NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, host)
);

-- One row for all connections of a session to one host and port that one rule decided, with their
-- number, sums and first and last time: what is repeated, by a retrying tool or a hostile loop,
-- costs no row. The row of host '' sums what is beyond the bound of a session's rows.
CREATE TABLE egress_log (
    session_id  uuid        NOT NULL REFERENCES chat_sessions ON DELETE CASCADE,
    host        text        NOT NULL CONSTRAINT egress_log_host CHECK (octet_length(host) <= 253),
    port        integer     NOT NULL CONSTRAINT egress_log_port CHECK (port BETWEEN 0 AND 65535),
    allowed     boolean     NOT NULL,
    rule        text        NOT NULL,
    message_id  uuid,       -- the turn of the newest connection
    connections bigint      NOT NULL CONSTRAINT egress_log_connections CHECK (connections > 0),
    sent        bigint      NOT NULL CONSTRAINT egress_log_sent CHECK (sent >= 0),
    received    bigint      NOT NULL CONSTRAINT egress_log_received CHECK (received >= 0),
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL,
    PRIMARY KEY (session_id, host, port, allowed, rule),
    CONSTRAINT egress_log_message FOREIGN KEY (session_id, message_id) REFERENCES messages (session_id, id) ON DELETE CASCADE
);
CREATE INDEX egress_log_newest ON egress_log (session_id, ended_at DESC);
