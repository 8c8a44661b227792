-- +goose Up
-- create "notice_choices" table
CREATE TABLE "notice_choices" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "kind" character varying NOT NULL, "mail" boolean NOT NULL, "hook" boolean NOT NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "noticechoice_user_id_kind" to table: "notice_choices"
CREATE UNIQUE INDEX "noticechoice_user_id_kind" ON "notice_choices" ("user_id", "kind");
-- create "notice_deliveries" table
CREATE TABLE "notice_deliveries" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "kind" character varying NOT NULL, "subject_id" uuid NOT NULL, "payload" bytea NULL, "state" character varying NOT NULL DEFAULT 'PENDING', "attempts" bigint NOT NULL DEFAULT 0, "due_at" timestamptz NOT NULL, "retry_until" timestamptz NOT NULL, "error" character varying NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, "ended_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "notice_delivery_due" to table: "notice_deliveries"
CREATE INDEX "notice_delivery_due" ON "notice_deliveries" ("due_at") WHERE ((state)::text = 'PENDING'::text);
-- create index "noticedelivery_ended_at" to table: "notice_deliveries"
CREATE INDEX "noticedelivery_ended_at" ON "notice_deliveries" ("ended_at");
-- create index "noticedelivery_user_id" to table: "notice_deliveries"
CREATE INDEX "noticedelivery_user_id" ON "notice_deliveries" ("user_id");
-- create "notice_facts" table
CREATE TABLE "notice_facts" ("id" uuid NOT NULL, "kind" character varying NOT NULL, "subjects" bytea NOT NULL, "due_at" timestamptz NOT NULL, "until" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "noticefact_due_at" to table: "notice_facts"
CREATE INDEX "noticefact_due_at" ON "notice_facts" ("due_at");
-- create "sale_reminders" table
CREATE TABLE "sale_reminders" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "sale_id" uuid NOT NULL, "sent_for" timestamptz NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "salereminder_sale_id_user_id" to table: "sale_reminders"
CREATE UNIQUE INDEX "salereminder_sale_id_user_id" ON "sale_reminders" ("sale_id", "user_id");
-- create index "salereminder_user_id" to table: "sale_reminders"
CREATE INDEX "salereminder_user_id" ON "sale_reminders" ("user_id");

-- +goose Down
-- reverse: create index "salereminder_user_id" to table: "sale_reminders"
DROP INDEX "salereminder_user_id";
-- reverse: create index "salereminder_sale_id_user_id" to table: "sale_reminders"
DROP INDEX "salereminder_sale_id_user_id";
-- reverse: create "sale_reminders" table
DROP TABLE "sale_reminders";
-- reverse: create index "noticefact_due_at" to table: "notice_facts"
DROP INDEX "noticefact_due_at";
-- reverse: create "notice_facts" table
DROP TABLE "notice_facts";
-- reverse: create index "noticedelivery_user_id" to table: "notice_deliveries"
DROP INDEX "noticedelivery_user_id";
-- reverse: create index "noticedelivery_ended_at" to table: "notice_deliveries"
DROP INDEX "noticedelivery_ended_at";
-- reverse: create index "notice_delivery_due" to table: "notice_deliveries"
DROP INDEX "notice_delivery_due";
-- reverse: create "notice_deliveries" table
DROP TABLE "notice_deliveries";
-- reverse: create index "noticechoice_user_id_kind" to table: "notice_choices"
DROP INDEX "noticechoice_user_id_kind";
-- reverse: create "notice_choices" table
DROP TABLE "notice_choices";
