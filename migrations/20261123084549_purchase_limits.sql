-- +goose Up
-- modify "sale_items" table
ALTER TABLE "sale_items" ADD COLUMN "purchase_limit" bigint NULL;
-- modify "sales" table
ALTER TABLE "sales" ADD COLUMN "total_limit" bigint NULL;

-- +goose Down
-- reverse: modify "sales" table
ALTER TABLE "sales" DROP COLUMN "total_limit";
-- reverse: modify "sale_items" table
ALTER TABLE "sale_items" DROP COLUMN "purchase_limit";
