-- +goose Up
-- Units of refunded orders that did not return to stock leave the sale.
INSERT INTO "stock_movements" ("id", "order_id", "item_id", "kind", "quantity", "created_at")
SELECT gen_random_uuid(), o."id", o."item_id", 'WITHDRAW', o."quantity", o."updated_at" FROM "orders" o
WHERE o."status" = 'REFUNDED' AND NOT EXISTS (SELECT FROM "stock_movements" m WHERE m."order_id" = o."id" AND m."kind" = 'RESTOCK');
UPDATE "sale_items" i SET "sold" = i."sold" - w."units", "total" = i."total" - w."units"
FROM (SELECT "item_id", SUM("quantity") AS "units" FROM "stock_movements" WHERE "kind" = 'WITHDRAW' GROUP BY "item_id") w WHERE i."id" = w."item_id";
UPDATE "orders" SET "return_due" = true WHERE "id" IN (SELECT "order_id" FROM "stock_movements" WHERE "kind" = 'WITHDRAW');

-- +goose Down
UPDATE "sale_items" i SET "sold" = i."sold" + w."units", "total" = i."total" + w."units"
FROM (SELECT "item_id", SUM("quantity") AS "units" FROM "stock_movements" WHERE "kind" = 'WITHDRAW' GROUP BY "item_id") w WHERE i."id" = w."item_id";
DELETE FROM "stock_movements" WHERE "kind" = 'WITHDRAW';
