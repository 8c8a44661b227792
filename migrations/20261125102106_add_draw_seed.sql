-- +goose Up
-- modify "sale_items" table
ALTER TABLE "sale_items" ADD COLUMN "draw_seed" bytea NULL;

-- +goose Down
-- reverse: modify "sale_items" table
ALTER TABLE "sale_items" DROP COLUMN "draw_seed";
