-- +goose NO TRANSACTION
-- +goose Up
-- Orders are written while the indexes are built. A build that was interrupted leaves an invalid one.
DROP INDEX CONCURRENTLY IF EXISTS "order_by_payment_key";
-- create index "order_by_payment_key"
CREATE INDEX CONCURRENTLY "order_by_payment_key" ON "orders" ("sale_id", "payment_key") WHERE (payment_key IS NOT NULL);
DROP INDEX CONCURRENTLY IF EXISTS "order_cancelled_by_person";
-- create index "order_cancelled_by_person"
CREATE INDEX CONCURRENTLY "order_cancelled_by_person" ON "orders" ("sale_id", "person_keys") WHERE (status = 'CANCELLED' AND person_keys IS NOT NULL);
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_address_and_item";
-- create index "waitlist_one_place_per_address_and_item"
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_one_place_per_address_and_item" ON "waitlist_entries" ("item_id", "address_key") WHERE (status IN ('WAITING', 'OFFERED'));
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_contact_and_item";
-- create index "waitlist_one_place_per_contact_and_item"
CREATE UNIQUE INDEX CONCURRENTLY "waitlist_one_place_per_contact_and_item" ON "waitlist_entries" ("item_id", "contact_key") WHERE (status IN ('WAITING', 'OFFERED'));

-- +goose Down
-- reverse: create index "waitlist_one_place_per_contact_and_item"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_contact_and_item";
-- reverse: create index "waitlist_one_place_per_address_and_item"
DROP INDEX CONCURRENTLY IF EXISTS "waitlist_one_place_per_address_and_item";
-- reverse: create index "order_cancelled_by_person"
DROP INDEX CONCURRENTLY IF EXISTS "order_cancelled_by_person";
-- reverse: create index "order_by_payment_key"
DROP INDEX CONCURRENTLY IF EXISTS "order_by_payment_key";
