-- +goose Up
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "pow_max" bigint NOT NULL DEFAULT 0;

-- +goose Down
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "pow_max";
