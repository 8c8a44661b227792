-- +goose Up
-- modify "users" table
ALTER TABLE "users" ADD COLUMN "verified_at" timestamptz NULL, ADD COLUMN "language" character varying NOT NULL DEFAULT '';
-- create "account_links" table
CREATE TABLE "account_links" ("id" uuid NOT NULL, "user_id" uuid NULL, "purpose" character varying NOT NULL, "address" character varying NOT NULL, "token_hash" bytea NOT NULL, "created_at" timestamptz NOT NULL, "expires_at" timestamptz NOT NULL, "used_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "accountlink_expires_at" to table: "account_links"
CREATE INDEX "accountlink_expires_at" ON "account_links" ("expires_at");
-- create index "accountlink_token_hash" to table: "account_links"
CREATE UNIQUE INDEX "accountlink_token_hash" ON "account_links" ("token_hash");
-- create index "accountlink_user_id" to table: "account_links"
CREATE INDEX "accountlink_user_id" ON "account_links" ("user_id");
-- create "mails" table
CREATE TABLE "mails" ("id" uuid NOT NULL, "user_id" uuid NULL, "recipient" character varying NOT NULL, "kind" character varying NOT NULL, "language" character varying NOT NULL, "content" bytea NULL, "state" character varying NOT NULL DEFAULT 'PENDING', "attempts" bigint NOT NULL DEFAULT 0, "due_at" timestamptz NOT NULL, "retry_until" timestamptz NOT NULL, "error" character varying NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, "ended_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "mail_due" to table: "mails"
CREATE INDEX "mail_due" ON "mails" ("due_at") WHERE ((state)::text = 'PENDING'::text);
-- create index "mail_ended_at" to table: "mails"
CREATE INDEX "mail_ended_at" ON "mails" ("ended_at");
-- create index "mail_user_id" to table: "mails"
CREATE INDEX "mail_user_id" ON "mails" ("user_id");

-- +goose Down
-- reverse: create index "mail_user_id" to table: "mails"
DROP INDEX "mail_user_id";
-- reverse: create index "mail_ended_at" to table: "mails"
DROP INDEX "mail_ended_at";
-- reverse: create index "mail_due" to table: "mails"
DROP INDEX "mail_due";
-- reverse: create "mails" table
DROP TABLE "mails";
-- reverse: create index "accountlink_user_id" to table: "account_links"
DROP INDEX "accountlink_user_id";
-- reverse: create index "accountlink_token_hash" to table: "account_links"
DROP INDEX "accountlink_token_hash";
-- reverse: create index "accountlink_expires_at" to table: "account_links"
DROP INDEX "accountlink_expires_at";
-- reverse: create "account_links" table
DROP TABLE "account_links";
-- reverse: modify "users" table
ALTER TABLE "users" DROP COLUMN "language", DROP COLUMN "verified_at";
