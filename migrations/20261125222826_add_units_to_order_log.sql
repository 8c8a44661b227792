-- +goose Up
-- modify "order_events" table
ALTER TABLE "order_events" ADD COLUMN "quantity" bigint NOT NULL DEFAULT 0;

-- +goose Down
-- reverse: modify "order_events" table
ALTER TABLE "order_events" DROP COLUMN "quantity";
