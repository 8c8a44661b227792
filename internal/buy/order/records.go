package order

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// packedVersion begins a packed copy. It differs from the first byte of JSON.
const packedVersion = 1

// errPacked reports a packed copy that this code cannot read.
var errPacked = errors.New("unreadable copy of an order")

// fresh reports whether an order is as the writer created it, so that it can be packed.
func (o *Order) fresh() bool {
	return o.Version == 1 && o.Kind == Seckill && o.Status == PendingPayment && o.PaymentDeadline != nil &&
		o.PaidAt == nil && o.ClaimID == nil && o.UpdatedAt.Equal(o.CreatedAt)
}

// appendPacked appends the copy of a fresh order without its id: a sixth of its JSON,
// because every order of a sale passes here. After the version, the ids of sale, item
// and user; then as varints: quantity, price, epoch, the time of creation (Unix
// microseconds), and the distances to it in microseconds of reservation, payment
// deadline and copy; then currency and number, each behind its length.
func (o *Order) appendPacked(dst []byte, copiedAt time.Time) []byte {
	dst = append(dst, packedVersion)
	for _, u := range [...][]byte{o.Sale[:], o.Item[:], o.User[:]} {
		dst = append(dst, u...)
	}
	created := o.CreatedAt.UnixMicro()
	for _, n := range [...]int64{
		int64(o.Quantity), o.UnitPriceMinor, o.Epoch, created,
		o.ReservedAt.UnixMicro() - created, o.PaymentDeadline.UnixMicro() - created, copiedAt.UnixMicro() - created,
	} {
		dst = binary.AppendVarint(dst, n)
	}
	for _, s := range [...]string{o.Currency, o.Number} {
		dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	}
	return dst
}

// unpack returns the order with this id from its packed copy.
func unpack(order id.Order, packed []byte) (orderRecord, error) {
	const ids = 3
	if len(packed) < 1+ids*16 || packed[0] != packedVersion {
		return orderRecord{}, errPacked
	}
	o := &Order{ID: order, Kind: Seckill, Status: PendingPayment, Version: 1}
	rest := packed[1:]
	for _, u := range [ids][]byte{o.Sale[:], o.Item[:], o.User[:]} {
		rest = rest[copy(u, rest):]
	}
	var numbers [7]int64
	for i := range numbers {
		n, size := binary.Varint(rest)
		if size <= 0 {
			return orderRecord{}, errPacked
		}
		numbers[i], rest = n, rest[size:]
	}
	for _, s := range [...]*string{&o.Currency, &o.Number} {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest[size:])) {
			return orderRecord{}, errPacked
		}
		rest = rest[size:]
		*s, rest = string(rest[:n]), rest[n:]
	}
	created := numbers[3]
	since := func(i int) time.Time { return time.UnixMicro(created + numbers[i]).UTC() }
	o.Quantity, o.UnitPriceMinor, o.Epoch = int(numbers[0]), numbers[1], numbers[2]
	o.CreatedAt = time.UnixMicro(created).UTC()
	o.UpdatedAt, o.ReservedAt = o.CreatedAt, since(4)
	deadline := since(5)
	o.PaymentDeadline = &deadline
	return orderRecord{Order: o, CopiedAtMs: since(6).UnixMilli()}, nil
}

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
