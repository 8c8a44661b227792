package draw

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"strconv"
)

// Lists are the lists of a record in parts, so that a file of many entries can be written without
// all of them in memory.
type Lists struct {
	Leaves iter.Seq2[[][32]byte, error]
	Order  iter.Seq2[[]int, error]
	Offers iter.Seq2[[]Offer, error]
}

// Encode returns the file.
func (r *Record) Encode() ([]byte, error) {
	var out bytes.Buffer
	err := r.Write(&out, Lists{whole([][32]byte(r.Leaves)), whole(r.Order), whole(r.Offers)})
	return out.Bytes(), err
}

// whole is a list in one part.
func whole[T any](list []T) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) { yield(list, nil) }
}

// Write writes the file of a record with the given lists instead of its own.
func (r *Record) Write(w io.Writer, lists Lists) error {
	text, err := json.Marshal(r.WithoutLists())
	if err != nil {
		return err
	}
	head, _, _ := bytes.Cut(text, []byte(`"leaves":`)) // the lists are the last fields
	if _, err := w.Write(append(head, `"leaves":[`...)); err != nil {
		return err
	}
	if err := writeParts(w, lists.Leaves, appendLeaf); err != nil {
		return err
	}
	if _, err := io.WriteString(w, `],"order":[`); err != nil {
		return err
	}
	if err := writeParts(w, lists.Order, appendIndex); err != nil {
		return err
	}
	if _, err := io.WriteString(w, `],"offers":[`); err != nil {
		return err
	}
	if err := writeParts(w, lists.Offers, appendOffer); err != nil {
		return err
	}
	_, err = io.WriteString(w, `]}`)
	return err
}

// WithoutLists returns a copy of a record without its lists.
func (r *Record) WithoutLists() *Record {
	head := *r
	head.Leaves, head.Order, head.Offers = nil, nil, nil
	return &head
}

// writeParts writes the elements of a list, separated by commas.
func writeParts[T any](w io.Writer, parts iter.Seq2[[]T, error], appendTo func(dst []byte, value T) []byte) error {
	var dst []byte
	first := true
	for part, err := range parts {
		if err != nil {
			return err
		}
		dst = dst[:0]
		for _, value := range part {
			if !first {
				dst = append(dst, ',')
			}
			dst, first = appendTo(dst, value), false
		}
		if _, err := w.Write(dst); err != nil {
			return err
		}
	}
	return nil
}

func appendLeaf(dst []byte, leaf [32]byte) []byte {
	return append(hex.AppendEncode(append(dst, '"'), leaf[:]), '"')
}

func appendIndex(dst []byte, index int) []byte { return strconv.AppendInt(dst, int64(index), 10) }

func appendOffer(dst []byte, o Offer) []byte {
	dst = strconv.AppendInt(append(dst, `{"rank":`...), int64(o.Rank), 10)
	dst = strconv.AppendInt(append(dst, `,"quantity":`...), int64(o.Quantity), 10)
	if o.Skipped != "" {
		dst = strconv.AppendQuote(append(dst, `,"skipped":`...), string(o.Skipped))
	}
	return append(dst, '}')
}
