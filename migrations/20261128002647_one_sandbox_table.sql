-- +goose Up
-- modify "sandbox_charges" table
ALTER TABLE "sandbox_charges" ADD COLUMN "refunds" jsonb NULL, ADD COLUMN "call" bytea NULL, ADD COLUMN "call_times" bigint NOT NULL DEFAULT 0, ADD COLUMN "call_tries" bigint NOT NULL DEFAULT 0, ADD COLUMN "call_due" timestamptz NULL;
-- Processes of the former release write refunds and call-backs to tables of their own, until they are replaced.
-- +goose StatementBegin
CREATE FUNCTION sandbox_refund_to_charge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sandbox_charges SET refunds = COALESCE(refunds, '{}') || jsonb_build_object(NEW.merchant_refund, NEW.amount_minor) WHERE id = NEW.charge_id;
  RETURN NULL;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION sandbox_call_to_charge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sandbox_charges SET call = NEW.body, call_times = NEW.times, call_due = NEW.due_at WHERE id = NEW.charge_id;
  RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER to_charge AFTER INSERT ON sandbox_refunds FOR EACH ROW EXECUTE FUNCTION sandbox_refund_to_charge();
CREATE TRIGGER to_charge AFTER INSERT ON sandbox_calls FOR EACH ROW EXECUTE FUNCTION sandbox_call_to_charge();
UPDATE sandbox_charges c SET refunds = r.refunds
FROM (SELECT charge_id, jsonb_object_agg(merchant_refund, amount_minor) AS refunds FROM sandbox_refunds GROUP BY charge_id) r WHERE r.charge_id = c.id;
UPDATE sandbox_charges c SET call = o.body, call_times = o.times, call_due = o.due_at
FROM (SELECT DISTINCT ON (charge_id) * FROM sandbox_calls WHERE NOT done ORDER BY charge_id, created_at DESC) o WHERE o.charge_id = c.id;

-- +goose Down
DROP TRIGGER to_charge ON sandbox_calls;
DROP TRIGGER to_charge ON sandbox_refunds;
DROP FUNCTION sandbox_call_to_charge();
DROP FUNCTION sandbox_refund_to_charge();
-- reverse: modify "sandbox_charges" table
ALTER TABLE "sandbox_charges" DROP COLUMN "call_due", DROP COLUMN "call_tries", DROP COLUMN "call_times", DROP COLUMN "call", DROP COLUMN "refunds";
