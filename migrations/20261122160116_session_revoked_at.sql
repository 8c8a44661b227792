-- +goose Up
-- create index "session_revoked_at" to table: "sessions"
CREATE INDEX "session_revoked_at" ON "sessions" ("revoked_at") WHERE (revoked_at IS NOT NULL);

-- +goose Down
-- reverse: create index "session_revoked_at" to table: "sessions"
DROP INDEX "session_revoked_at";
