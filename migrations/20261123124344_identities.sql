-- +goose Up
-- create "user_identities" table
CREATE TABLE "user_identities" ("id" uuid NOT NULL, "issuer" character varying NOT NULL, "subject" character varying NOT NULL, "user_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "useridentity_issuer_subject" to table: "user_identities"
CREATE UNIQUE INDEX "useridentity_issuer_subject" ON "user_identities" ("issuer", "subject");
-- create index "useridentity_user_id" to table: "user_identities"
CREATE INDEX "useridentity_user_id" ON "user_identities" ("user_id");

-- +goose Down
-- reverse: create index "useridentity_user_id" to table: "user_identities"
DROP INDEX "useridentity_user_id";
-- reverse: create index "useridentity_issuer_subject" to table: "user_identities"
DROP INDEX "useridentity_issuer_subject";
-- reverse: create "user_identities" table
DROP TABLE "user_identities";
