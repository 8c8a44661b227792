-- +goose Up
-- modify "notice_choices" table
ALTER TABLE "notice_choices" ADD COLUMN "push" boolean NOT NULL DEFAULT false;
-- modify "notice_deliveries" table
ALTER TABLE "notice_deliveries" ADD COLUMN "subscription_id" uuid NULL;
-- create "push_subscriptions" table
CREATE TABLE "push_subscriptions" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "session_id" uuid NOT NULL, "endpoint" character varying NOT NULL, "p256dh" bytea NOT NULL, "auth" bytea NOT NULL, "server_key" character varying NOT NULL, "label" character varying NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, "sent_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "pushsubscription_endpoint" to table: "push_subscriptions"
CREATE UNIQUE INDEX "pushsubscription_endpoint" ON "push_subscriptions" ("endpoint");
-- create index "pushsubscription_session_id" to table: "push_subscriptions"
CREATE INDEX "pushsubscription_session_id" ON "push_subscriptions" ("session_id");
-- create index "pushsubscription_user_id" to table: "push_subscriptions"
CREATE INDEX "pushsubscription_user_id" ON "push_subscriptions" ("user_id");

-- +goose Down
-- reverse: create index "pushsubscription_user_id" to table: "push_subscriptions"
DROP INDEX "pushsubscription_user_id";
-- reverse: create index "pushsubscription_session_id" to table: "push_subscriptions"
DROP INDEX "pushsubscription_session_id";
-- reverse: create index "pushsubscription_endpoint" to table: "push_subscriptions"
DROP INDEX "pushsubscription_endpoint";
-- reverse: create "push_subscriptions" table
DROP TABLE "push_subscriptions";
-- reverse: modify "notice_deliveries" table
ALTER TABLE "notice_deliveries" DROP COLUMN "subscription_id";
-- reverse: modify "notice_choices" table
ALTER TABLE "notice_choices" DROP COLUMN "push";
