-- +goose Up
-- modify "interventions" table
ALTER TABLE "interventions" ADD COLUMN "subject_id" uuid NULL, ADD COLUMN "change" text NOT NULL DEFAULT '', ADD COLUMN "amount_minor" bigint NOT NULL DEFAULT 0, ADD COLUMN "currency" character varying NOT NULL DEFAULT '';
-- create "sale_approvals" table
CREATE TABLE "sale_approvals" ("id" uuid NOT NULL, "approved_by" uuid NOT NULL, "terms" text NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- What was approved is never changed.
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON sale_approvals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- +goose Down
DROP TRIGGER append_only ON sale_approvals;
-- reverse: create "sale_approvals" table
DROP TABLE "sale_approvals";
-- reverse: modify "interventions" table
ALTER TABLE "interventions" DROP COLUMN "currency", DROP COLUMN "amount_minor", DROP COLUMN "change", DROP COLUMN "subject_id";
