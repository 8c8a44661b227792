-- +goose Up
-- create "service_tokens" table
CREATE TABLE "service_tokens" ("id" uuid NOT NULL, "name" character varying NOT NULL, "scopes" character varying NOT NULL, "hash" bytea NOT NULL, "created_by" uuid NULL, "created_at" timestamptz NOT NULL, "expires_at" timestamptz NOT NULL, "last_used_at" timestamptz NULL, "revoked_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "servicetoken_created_by" to table: "service_tokens"
CREATE INDEX "servicetoken_created_by" ON "service_tokens" ("created_by");
-- create index "servicetoken_hash" to table: "service_tokens"
CREATE UNIQUE INDEX "servicetoken_hash" ON "service_tokens" ("hash");
-- create index "servicetoken_live" to table: "service_tokens"
CREATE INDEX "servicetoken_live" ON "service_tokens" ("id") WHERE (revoked_at IS NULL);

-- +goose Down
-- reverse: create index "servicetoken_live" to table: "service_tokens"
DROP INDEX "servicetoken_live";
-- reverse: create index "servicetoken_hash" to table: "service_tokens"
DROP INDEX "servicetoken_hash";
-- reverse: create index "servicetoken_created_by" to table: "service_tokens"
DROP INDEX "servicetoken_created_by";
-- reverse: create "service_tokens" table
DROP TABLE "service_tokens";
