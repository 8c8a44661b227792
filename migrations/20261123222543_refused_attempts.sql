-- +goose Up
-- create "refused_attempts" table
CREATE TABLE "refused_attempts" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "sale_id" uuid NOT NULL, "item_id" uuid NOT NULL, "stage" character varying NOT NULL, "code" character varying NOT NULL, "times" bigint NOT NULL, "first_at" timestamptz NOT NULL, "last_at" timestamptz NOT NULL, "units_left" bigint NULL, "ahead" bigint NULL, PRIMARY KEY ("id"));
-- create index "refusedattempt_last_at" to table: "refused_attempts"
CREATE INDEX "refusedattempt_last_at" ON "refused_attempts" ("last_at");
-- create index "refusedattempt_user_id_sale_id_item_id_stage_code" to table: "refused_attempts"
CREATE UNIQUE INDEX "refusedattempt_user_id_sale_id_item_id_stage_code" ON "refused_attempts" ("user_id", "sale_id", "item_id", "stage", "code");

-- +goose Down
-- reverse: create index "refusedattempt_user_id_sale_id_item_id_stage_code" to table: "refused_attempts"
DROP INDEX "refusedattempt_user_id_sale_id_item_id_stage_code";
-- reverse: create index "refusedattempt_last_at" to table: "refused_attempts"
DROP INDEX "refusedattempt_last_at";
-- reverse: create "refused_attempts" table
DROP TABLE "refused_attempts";
