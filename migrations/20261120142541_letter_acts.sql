-- +goose Up
-- create "letter_acts" table
CREATE TABLE "letter_acts" ("id" uuid NOT NULL, "letter" character varying NOT NULL, "kind" character varying NOT NULL, "stream" character varying NOT NULL, "task_id" uuid NULL, "reason" character varying NOT NULL, "note" character varying NOT NULL, "actor_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "letteract_letter_kind" to table: "letter_acts"
CREATE UNIQUE INDEX "letteract_letter_kind" ON "letter_acts" ("letter", "kind");

-- +goose Down
-- reverse: create index "letteract_letter_kind" to table: "letter_acts"
DROP INDEX "letteract_letter_kind";
-- reverse: create "letter_acts" table
DROP TABLE "letter_acts";
