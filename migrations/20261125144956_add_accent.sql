-- +goose Up
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "accent" character varying NOT NULL DEFAULT '';

-- +goose Down
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "accent";
