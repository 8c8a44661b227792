package order

import (
	"encoding/json"
	"strconv"
	"time"

	"seckill/internal/platform/postgres"
)

// appendRecord appends the copy of an order for Redis: the JSON of the Order with the
// time of the copy in Unix milliseconds. It does not use encoding/json because every
// order of a sale passes here; a test compares the two.
func (o *Order) appendRecord(dst []byte, copiedAtMs int64) []byte {
	dst = appendID(append(dst, `{"id":`...), o.ID)
	dst = appendWord(append(dst, `,"number":`...), o.Number)
	dst = appendID(append(dst, `,"sale":`...), o.Sale)
	dst = appendID(append(dst, `,"item":`...), o.Item)
	dst = appendID(append(dst, `,"user":`...), o.User)
	dst = appendWord(append(dst, `,"kind":`...), string(o.Kind))
	dst = appendWord(append(dst, `,"status":`...), string(o.Status))
	dst = strconv.AppendInt(append(dst, `,"quantity":`...), int64(o.Quantity), 10)
	if o.RefundedQuantity > 0 {
		dst = strconv.AppendInt(append(dst, `,"refundedQuantity":`...), int64(o.RefundedQuantity), 10)
	}
	dst = strconv.AppendInt(append(dst, `,"unitPriceMinor":`...), o.UnitPriceMinor, 10)
	dst = appendWord(append(dst, `,"currency":`...), o.Currency)
	dst = strconv.AppendInt(append(dst, `,"revision":`...), o.Version, 10)
	dst = strconv.AppendInt(append(dst, `,"epoch":`...), o.Epoch, 10)
	dst = appendInstant(append(dst, `,"reservedAt":`...), o.ReservedAt)
	dst = appendInstant(append(dst, `,"createdAt":`...), o.CreatedAt)
	dst = appendInstant(append(dst, `,"updatedAt":`...), o.UpdatedAt)
	if o.PaymentDeadline != nil {
		dst = appendInstant(append(dst, `,"paymentDeadline":`...), *o.PaymentDeadline)
	}
	if o.PaidAt != nil {
		dst = appendInstant(append(dst, `,"paidAt":`...), *o.PaidAt)
	}
	if o.ClaimID != nil {
		dst = appendID(append(dst, `,"claim":`...), *o.ClaimID)
	}
	if o.Review != nil {
		review, _ := json.Marshal(o.Review) // rare; a Review is always JSON
		dst = append(append(dst, `,"review":`...), review...)
	}
	dst = strconv.AppendInt(append(dst, `,"copiedAtMs":`...), copiedAtMs, 10)
	return append(dst, '}')
}

func appendID[T ~[16]byte](dst []byte, u T) []byte {
	return append(postgres.AppendUUID(append(dst, '"'), u), '"')
}

// appendWord appends a text of letters, digits, dashes and underscores, which needs no
// escaping.
func appendWord(dst []byte, word string) []byte {
	return append(append(append(dst, '"'), word...), '"')
}

func appendInstant(dst []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
}
