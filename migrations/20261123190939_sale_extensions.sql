-- +goose Up
-- modify "interventions" table
ALTER TABLE "interventions" ADD COLUMN "ends_at" timestamptz NULL;

-- +goose Down
-- reverse: modify "interventions" table
ALTER TABLE "interventions" DROP COLUMN "ends_at";
