-- +goose Up
-- create "dead_letters" table
CREATE TABLE "dead_letters" ("id" uuid NOT NULL, "stream" character varying NOT NULL, "entry" character varying NOT NULL, "message_id" character varying NOT NULL DEFAULT '', "handler" character varying NOT NULL DEFAULT '', "reason" character varying NOT NULL DEFAULT '', "deliveries" bigint NOT NULL DEFAULT 0, "attempts" bigint NOT NULL DEFAULT 0, "fields" bytea NOT NULL, "state" character varying NOT NULL DEFAULT 'OPEN', "created_at" timestamptz NOT NULL, "ended_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "dead_letter_once" to table: "dead_letters"
CREATE UNIQUE INDEX "dead_letter_once" ON "dead_letters" ("stream", "entry") WHERE ((state)::text = 'OPEN'::text);
-- create index "dead_letter_open" to table: "dead_letters"
CREATE INDEX "dead_letter_open" ON "dead_letters" ("id") WHERE ((state)::text = 'OPEN'::text);
-- create index "dead_letter_retried" to table: "dead_letters"
CREATE INDEX "dead_letter_retried" ON "dead_letters" ("message_id") WHERE ((state)::text = 'RETRIED'::text);
-- create index "deadletter_ended_at" to table: "dead_letters"
CREATE INDEX "deadletter_ended_at" ON "dead_letters" ("ended_at");

-- +goose Down
-- reverse: create index "deadletter_ended_at" to table: "dead_letters"
DROP INDEX "deadletter_ended_at";
-- reverse: create index "dead_letter_retried" to table: "dead_letters"
DROP INDEX "dead_letter_retried";
-- reverse: create index "dead_letter_open" to table: "dead_letters"
DROP INDEX "dead_letter_open";
-- reverse: create index "dead_letter_once" to table: "dead_letters"
DROP INDEX "dead_letter_once";
-- reverse: create "dead_letters" table
DROP TABLE "dead_letters";
