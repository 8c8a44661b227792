-- +goose Up
-- modify "users" table
ALTER TABLE "users" ADD COLUMN "disabled_at" timestamptz NULL, ADD COLUMN "disabled_reason" character varying NOT NULL DEFAULT '';
-- create index "user_disabled_at" to table: "users"
CREATE INDEX "user_disabled_at" ON "users" ("disabled_at") WHERE (disabled_at IS NOT NULL);
-- create "security_events" table
CREATE TABLE "security_events" ("id" uuid NOT NULL, "kind" character varying NOT NULL, "actor_id" uuid NULL, "subject_id" uuid NULL, "address" character varying NOT NULL DEFAULT '', "detail" character varying NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "securityevent_created_at" to table: "security_events"
CREATE INDEX "securityevent_created_at" ON "security_events" ("created_at");
-- create index "securityevent_subject_id_created_at" to table: "security_events"
CREATE INDEX "securityevent_subject_id_created_at" ON "security_events" ("subject_id", "created_at");

-- +goose Down
-- reverse: create index "securityevent_subject_id_created_at" to table: "security_events"
DROP INDEX "securityevent_subject_id_created_at";
-- reverse: create index "securityevent_created_at" to table: "security_events"
DROP INDEX "securityevent_created_at";
-- reverse: create "security_events" table
DROP TABLE "security_events";
-- reverse: create index "user_disabled_at" to table: "users"
DROP INDEX "user_disabled_at";
-- reverse: modify "users" table
ALTER TABLE "users" DROP COLUMN "disabled_reason", DROP COLUMN "disabled_at";
