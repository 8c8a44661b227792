package order

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"
)

// This file encodes and decodes requests without reflection when they have the exact
// form that this package writes, because every order passes here twice. Any other form
// is left to encoding/json. A test compares the two.

func (r Requested) marshal() ([]byte, error) {
	if !plain(r.Currency) || !plain(r.IdempotencyKey) || r.Epoch != 0 || r.SubmittedAtMs != 0 {
		return json.Marshal(r)
	}
	dst := strconv.AppendInt(append(make([]byte, 0, 384), `{"v":`...), int64(r.V), 10)
	dst = appendID(append(dst, `,"task":`...), r.Task)
	dst = appendID(append(dst, `,"user":`...), r.User)
	dst = appendID(append(dst, `,"sale":`...), r.Sale)
	dst = appendID(append(dst, `,"item":`...), r.Item)
	dst = strconv.AppendInt(append(dst, `,"quantity":`...), int64(r.Quantity), 10)
	dst = strconv.AppendInt(append(dst, `,"unitPriceMinor":`...), r.UnitPriceMinor, 10)
	dst = appendWord(append(dst, `,"currency":`...), r.Currency)
	dst = strconv.AppendInt(append(dst, `,"paymentWindowSeconds":`...), int64(r.PaymentWindowSeconds), 10)
	dst = appendWord(append(dst, `,"idempotencyKey":`...), r.IdempotencyKey)
	return append(dst, '}'), nil
}

func (r *Requested) unmarshal(text []byte) error {
	c := cursor{rest: text}
	read := Requested{
		V:    int(c.number(`{"v":`)),
		Task: c.id(`,"task":"`), User: c.id(`","user":"`), Sale: c.id(`","sale":"`), Item: c.id(`","item":"`),
		Quantity: int(c.number(`","quantity":`)), UnitPriceMinor: c.number(`,"unitPriceMinor":`),
		Currency:             c.word(`,"currency":"`),
		PaymentWindowSeconds: int(c.number(`","paymentWindowSeconds":`)),
		IdempotencyKey:       c.word(`,"idempotencyKey":"`),
	}
	if !c.end(`"}`) {
		return json.Unmarshal(text, r)
	}
	*r = read
	return nil
}

// plain reports whether a text needs no escaping in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// cursor parses a text of known form; other is set once the text deviates from it.
type cursor struct {
	rest  []byte
	other bool
}

// skip consumes the expected text.
func (c *cursor) skip(next string) {
	if c.other || len(c.rest) < len(next) || string(c.rest[:len(next)]) != next {
		c.other = true
		return
	}
	c.rest = c.rest[len(next):]
}

// end reports whether the rest is exactly last and the whole text matched.
func (c *cursor) end(last string) bool {
	c.skip(last)
	return !c.other && len(c.rest) == 0
}

const idLen = 36

func (c *cursor) id(before string) uuid.UUID {
	if c.skip(before); c.other || len(c.rest) < idLen {
		c.other = true
		return uuid.Nil
	}
	u, err := uuid.ParseBytes(c.rest[:idLen])
	c.rest, c.other = c.rest[idLen:], err != nil
	return u
}

// maxDigits is the number of decimal digits that always fit into an int64.
const maxDigits = 18

func (c *cursor) number(before string) (n int64) {
	c.skip(before)
	digits := 0
	for digits < len(c.rest) && c.rest[digits] >= '0' && c.rest[digits] <= '9' && digits <= maxDigits {
		n = n*10 + int64(c.rest[digits]-'0')
		digits++
	}
	if c.other || digits == 0 || digits > maxDigits || c.rest[0] == '0' && digits > 1 {
		c.other = true
		return 0
	}
	c.rest = c.rest[digits:]
	return n
}

func (c *cursor) word(before string) string {
	c.skip(before)
	end := bytes.IndexByte(c.rest, '"')
	if c.other || end < 0 {
		c.other = true
		return ""
	}
	word := string(c.rest[:end])
	c.rest, c.other = c.rest[end:], !plain(word)
	return word
}
