-- +goose Up
-- modify "sale_items" table
ALTER TABLE "sale_items" ADD COLUMN "gate_epoch" bigint NOT NULL DEFAULT 0;

-- +goose Down
-- reverse: modify "sale_items" table
ALTER TABLE "sale_items" DROP COLUMN "gate_epoch";
