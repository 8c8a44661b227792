-- +goose Up
-- modify "orders" table
ALTER TABLE "orders" ADD COLUMN "claim_id" uuid NULL, ADD COLUMN "return_due" boolean NOT NULL DEFAULT false;
-- create index "order_returns" to table: "orders"
CREATE INDEX "order_returns" ON "orders" ("id") WHERE return_due;
-- create "order_events" table
CREATE TABLE "order_events" ("id" uuid NOT NULL, "order_id" uuid NOT NULL, "status" character varying NOT NULL, "version" bigint NOT NULL, "actor" character varying NOT NULL, "actor_id" uuid NULL, "code" character varying NOT NULL, "note" character varying NOT NULL DEFAULT '', "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "orderevent_order_id_id" to table: "order_events"
CREATE INDEX "orderevent_order_id_id" ON "order_events" ("order_id", "id");
-- create "payments" table
CREATE TABLE "payments" ("id" uuid NOT NULL, "order_id" uuid NOT NULL, "user_id" uuid NOT NULL, "provider" character varying NOT NULL, "idempotency_key" character varying NOT NULL, "status" character varying NOT NULL DEFAULT 'CREATING', "amount_minor" bigint NOT NULL, "currency" character varying NOT NULL, "provider_ref" character varying NOT NULL DEFAULT '', "transaction" character varying NOT NULL DEFAULT '', "qr_code" character varying NOT NULL DEFAULT '', "redirect_url" character varying NOT NULL DEFAULT '', "version" bigint NOT NULL DEFAULT 1, "expires_at" timestamptz NOT NULL, "check_at" timestamptz NOT NULL, "checks" bigint NOT NULL DEFAULT 0, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, "paid_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "payment_one_open_per_order" to table: "payments"
CREATE UNIQUE INDEX "payment_one_open_per_order" ON "payments" ("order_id") WHERE status IN ('CREATING', 'PENDING');
-- create index "payment_open_by_check_at" to table: "payments"
CREATE INDEX "payment_open_by_check_at" ON "payments" ("check_at") WHERE status IN ('CREATING', 'PENDING');
-- create index "payment_order_id_idempotency_key" to table: "payments"
CREATE UNIQUE INDEX "payment_order_id_idempotency_key" ON "payments" ("order_id", "idempotency_key");
-- create "payment_events" table
CREATE TABLE "payment_events" ("id" uuid NOT NULL, "provider" character varying NOT NULL, "event_id" character varying NOT NULL, "payment_id" uuid NOT NULL, "kind" character varying NOT NULL, "amount_minor" bigint NOT NULL, "currency" character varying NOT NULL, "provider_ref" character varying NOT NULL DEFAULT '', "transaction" character varying NOT NULL DEFAULT '', "state" character varying NOT NULL DEFAULT 'RECEIVED', "outcome" character varying NOT NULL DEFAULT '', "tries" bigint NOT NULL DEFAULT 0, "try_at" timestamptz NOT NULL, "happened_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, "handled_at" timestamptz NULL, PRIMARY KEY ("id"));
-- create index "paymentevent_held" to table: "payment_events"
CREATE INDEX "paymentevent_held" ON "payment_events" ("state") WHERE state = 'HELD';
-- create index "paymentevent_open_by_try_at" to table: "payment_events"
CREATE INDEX "paymentevent_open_by_try_at" ON "payment_events" ("try_at") WHERE state = 'RECEIVED';
-- create index "paymentevent_payment_id" to table: "payment_events"
CREATE INDEX "paymentevent_payment_id" ON "payment_events" ("payment_id");
-- create index "paymentevent_provider_event_id" to table: "payment_events"
CREATE UNIQUE INDEX "paymentevent_provider_event_id" ON "payment_events" ("provider", "event_id");
-- create "refunds" table
CREATE TABLE "refunds" ("id" uuid NOT NULL, "order_id" uuid NOT NULL, "payment_id" uuid NOT NULL, "idempotency_key" character varying NOT NULL, "cause" character varying NOT NULL, "status" character varying NOT NULL, "amount_minor" bigint NOT NULL, "currency" character varying NOT NULL, "reason" character varying NOT NULL, "restock" boolean NOT NULL DEFAULT true, "decided_by" uuid NULL, "decision" character varying NOT NULL DEFAULT '', "version" bigint NOT NULL DEFAULT 1, "tries" bigint NOT NULL DEFAULT 0, "try_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "refund_one_per_payment" to table: "refunds"
CREATE UNIQUE INDEX "refund_one_per_payment" ON "refunds" ("payment_id") WHERE status <> 'REJECTED';
-- create index "refund_order_id_idempotency_key" to table: "refunds"
CREATE UNIQUE INDEX "refund_order_id_idempotency_key" ON "refunds" ("order_id", "idempotency_key");
-- create index "refund_sending_by_try_at" to table: "refunds"
CREATE INDEX "refund_sending_by_try_at" ON "refunds" ("try_at") WHERE status = 'SENDING';
-- create index "refund_status_id" to table: "refunds"
CREATE INDEX "refund_status_id" ON "refunds" ("status", "id");
-- create "sandbox_calls" table
CREATE TABLE "sandbox_calls" ("id" uuid NOT NULL, "charge_id" uuid NOT NULL, "body" bytea NOT NULL, "times" bigint NOT NULL, "tries" bigint NOT NULL DEFAULT 0, "due_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, "done" boolean NOT NULL DEFAULT false, PRIMARY KEY ("id"));
-- create index "sandboxcall_due" to table: "sandbox_calls"
CREATE INDEX "sandboxcall_due" ON "sandbox_calls" ("due_at") WHERE (NOT done);
-- create "sandbox_charges" table
CREATE TABLE "sandbox_charges" ("id" uuid NOT NULL, "merchant_payment" uuid NOT NULL, "description" character varying NOT NULL, "amount_minor" bigint NOT NULL, "currency" character varying NOT NULL, "status" character varying NOT NULL DEFAULT 'OPEN', "transaction" character varying NOT NULL DEFAULT '', "refunded_minor" bigint NOT NULL DEFAULT 0, "version" bigint NOT NULL DEFAULT 1, "expires_at" timestamptz NOT NULL, "created_at" timestamptz NOT NULL, "settles_at" timestamptz NULL, "paid_at" timestamptz NULL, PRIMARY KEY ("id"), CONSTRAINT "sandbox_not_over_refunded" CHECK (refunded_minor <= amount_minor));
-- create index "sandbox_charges_merchant_payment_key" to table: "sandbox_charges"
CREATE UNIQUE INDEX "sandbox_charges_merchant_payment_key" ON "sandbox_charges" ("merchant_payment");
-- create index "sandboxcharge_settles_at" to table: "sandbox_charges"
CREATE INDEX "sandboxcharge_settles_at" ON "sandbox_charges" ("settles_at") WHERE (settles_at IS NOT NULL);
-- create "sandbox_refunds" table
CREATE TABLE "sandbox_refunds" ("id" uuid NOT NULL, "merchant_refund" uuid NOT NULL, "charge_id" uuid NOT NULL, "amount_minor" bigint NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "sandbox_refunds_merchant_refund_key" to table: "sandbox_refunds"
CREATE UNIQUE INDEX "sandbox_refunds_merchant_refund_key" ON "sandbox_refunds" ("merchant_refund");
-- create index "sandboxrefund_charge_id" to table: "sandbox_refunds"
CREATE INDEX "sandboxrefund_charge_id" ON "sandbox_refunds" ("charge_id");
-- create "waitlist_entries" table
CREATE TABLE "waitlist_entries" ("id" uuid NOT NULL, "sale_id" uuid NOT NULL, "item_id" uuid NOT NULL, "user_id" uuid NOT NULL, "quantity" bigint NOT NULL, "status" character varying NOT NULL DEFAULT 'WAITING', "version" bigint NOT NULL DEFAULT 1, "offer_expires_at" timestamptz NULL, "order_id" uuid NULL, "return_due" boolean NOT NULL DEFAULT false, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "waitlist_line" to table: "waitlist_entries"
CREATE INDEX "waitlist_line" ON "waitlist_entries" ("item_id", "id") WHERE status = 'WAITING';
-- create index "waitlist_offers" to table: "waitlist_entries"
CREATE INDEX "waitlist_offers" ON "waitlist_entries" ("offer_expires_at") WHERE status = 'OFFERED';
-- create index "waitlist_one_place_per_user_and_item" to table: "waitlist_entries"
CREATE UNIQUE INDEX "waitlist_one_place_per_user_and_item" ON "waitlist_entries" ("item_id", "user_id") WHERE status IN ('WAITING', 'OFFERED');
-- create index "waitlist_returns" to table: "waitlist_entries"
CREATE INDEX "waitlist_returns" ON "waitlist_entries" ("id") WHERE return_due;
-- create index "waitlistentry_user_id" to table: "waitlist_entries"
CREATE INDEX "waitlistentry_user_id" ON "waitlist_entries" ("user_id");

-- +goose Down
-- reverse: create index "waitlistentry_user_id" to table: "waitlist_entries"
DROP INDEX "waitlistentry_user_id";
-- reverse: create index "waitlist_returns" to table: "waitlist_entries"
DROP INDEX "waitlist_returns";
-- reverse: create index "waitlist_one_place_per_user_and_item" to table: "waitlist_entries"
DROP INDEX "waitlist_one_place_per_user_and_item";
-- reverse: create index "waitlist_offers" to table: "waitlist_entries"
DROP INDEX "waitlist_offers";
-- reverse: create index "waitlist_line" to table: "waitlist_entries"
DROP INDEX "waitlist_line";
-- reverse: create "waitlist_entries" table
DROP TABLE "waitlist_entries";
-- reverse: create index "sandboxrefund_charge_id" to table: "sandbox_refunds"
DROP INDEX "sandboxrefund_charge_id";
-- reverse: create index "sandbox_refunds_merchant_refund_key" to table: "sandbox_refunds"
DROP INDEX "sandbox_refunds_merchant_refund_key";
-- reverse: create "sandbox_refunds" table
DROP TABLE "sandbox_refunds";
-- reverse: create index "sandboxcharge_settles_at" to table: "sandbox_charges"
DROP INDEX "sandboxcharge_settles_at";
-- reverse: create index "sandbox_charges_merchant_payment_key" to table: "sandbox_charges"
DROP INDEX "sandbox_charges_merchant_payment_key";
-- reverse: create "sandbox_charges" table
DROP TABLE "sandbox_charges";
-- reverse: create index "sandboxcall_due" to table: "sandbox_calls"
DROP INDEX "sandboxcall_due";
-- reverse: create "sandbox_calls" table
DROP TABLE "sandbox_calls";
-- reverse: create index "refund_status_id" to table: "refunds"
DROP INDEX "refund_status_id";
-- reverse: create index "refund_sending_by_try_at" to table: "refunds"
DROP INDEX "refund_sending_by_try_at";
-- reverse: create index "refund_order_id_idempotency_key" to table: "refunds"
DROP INDEX "refund_order_id_idempotency_key";
-- reverse: create index "refund_one_per_payment" to table: "refunds"
DROP INDEX "refund_one_per_payment";
-- reverse: create "refunds" table
DROP TABLE "refunds";
-- reverse: create index "paymentevent_provider_event_id" to table: "payment_events"
DROP INDEX "paymentevent_provider_event_id";
-- reverse: create index "paymentevent_payment_id" to table: "payment_events"
DROP INDEX "paymentevent_payment_id";
-- reverse: create index "paymentevent_open_by_try_at" to table: "payment_events"
DROP INDEX "paymentevent_open_by_try_at";
-- reverse: create index "paymentevent_held" to table: "payment_events"
DROP INDEX "paymentevent_held";
-- reverse: create "payment_events" table
DROP TABLE "payment_events";
-- reverse: create index "payment_order_id_idempotency_key" to table: "payments"
DROP INDEX "payment_order_id_idempotency_key";
-- reverse: create index "payment_open_by_check_at" to table: "payments"
DROP INDEX "payment_open_by_check_at";
-- reverse: create index "payment_one_open_per_order" to table: "payments"
DROP INDEX "payment_one_open_per_order";
-- reverse: create "payments" table
DROP TABLE "payments";
-- reverse: create index "orderevent_order_id_id" to table: "order_events"
DROP INDEX "orderevent_order_id_id";
-- reverse: create "order_events" table
DROP TABLE "order_events";
-- reverse: create index "order_returns" to table: "orders"
DROP INDEX "order_returns";
-- reverse: modify "orders" table
ALTER TABLE "orders" DROP COLUMN "return_due", DROP COLUMN "claim_id";
