package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"seckill/ent"
	"seckill/internal/buy/access"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/spreadsheet"
)

// CodesExportPath is the download URL of the codes of a batch: ?sale=<public id>&batch=<number>.
const CodesExportPath = "/exports/codes.csv"

// CodesInput describes a new batch of codes.
type CodesInput struct {
	ActInput
	Source  string
	Codes   int
	Uses    int       // units that can be bought with each
	Expires time.Time // zero = with the sale
}

// check returns all faults of the input.
func (in *CodesInput) check(now time.Time) error {
	var source, expires error
	if !access.ValidList(in.Source) {
		source = invalid(fault.SlugFormat, "source")
	}
	if !in.Expires.IsZero() && !in.Expires.After(now) {
		expires = invalid(fault.Rule{Code: "in the future"}, "expiresAt")
	}
	return fault.All(source, expires, inRange(in.Codes, 1, access.MaxCodes, "codes"),
		inRange(in.Uses, 1, access.MaxUses, "uses"), optional(&in.Note, maxNote, "note"))
}

// CreateCodes adds a batch of codes to a sale that is not over. Refusals: INVALID_INPUT; CONFLICT above
// access.MaxBatches.
func (s *Service) CreateCodes(ctx context.Context, in CodesInput) (*access.Batch, error) {
	now := s.cfg.Clock.Now()
	if err := in.check(now); err != nil {
		return nil, err
	}
	return s.changeCodes(ctx, in.ActInput, func(batches access.Batches, c changes) (access.Batches, int, error) {
		if len(batches) == access.MaxBatches {
			return nil, 0, conflict("saleId")
		}
		b := access.Batch{Number: len(batches) + 1, Source: in.Source, Codes: in.Codes, Uses: in.Uses,
			Created: now.UTC(), Expires: in.Expires.UTC(), Key: s.cfg.Codes.Key()}
		c["batch"], c["source"], c["codes"], c["uses"] = b.Number, b.Source, b.Codes, b.Uses
		if !b.Expires.IsZero() {
			c["expiresAt"] = b.Expires
		}
		return append(slices.Clone(batches), b), b.Number, nil
	})
}

// RevokeInput names a code of a batch; number 0 = the whole batch.
type RevokeInput struct {
	ActInput
	Batch, Number int
}

// RevokeCodes revokes a code or a batch of them. Refusals: NOT_FOUND; CONFLICT above access.MaxRevoked.
func (s *Service) RevokeCodes(ctx context.Context, in RevokeInput) (*access.Batch, error) {
	if err := optional(&in.Note, maxNote, "note"); err != nil {
		return nil, err
	}
	return s.changeCodes(ctx, in.ActInput, func(batches access.Batches, c changes) (access.Batches, int, error) {
		batches = slices.Clone(batches)
		b := batches.Find(in.Batch)
		switch {
		case b == nil:
			return nil, 0, unknown("batch")
		case in.Number < 0 || in.Number > b.Codes:
			return nil, 0, unknown("number")
		case b.Revoked || in.Number > 0 && b.Revokes(in.Number):
			return nil, b.Number, nil
		case in.Number > 0 && len(b.RevokedCodes) == access.MaxRevoked:
			return nil, 0, conflict("number")
		}
		b.Revoke(in.Number)
		c["revokedBatch"] = b.Number
		if in.Number > 0 {
			c["revokedCode"] = in.Number
		}
		return batches, b.Number, nil
	})
}

// changeCodes replaces the code batches of a sale by those that change returns, and returns the batch with
// the returned number. If change returns no batches, nothing is written.
func (s *Service) changeCodes(ctx context.Context, in ActInput,
	change func(access.Batches, changes) (access.Batches, int, error)) (*access.Batch, error) {
	var next access.Batches
	number, details := 0, changes{}
	v, err := s.do(ctx, act{
		by: in.By, sale: in.Sale, what: sale.ActCodes, note: in.Note, details: details,
		decide: func(v *sale.Sale) (to sale.Status, err error) {
			next, number, err = change(v.Codes, details)
			if next == nil && err == nil {
				err = errUnchanged
			}
			return v.Status, err
		},
		set: func(u *ent.SaleUpdate) { u.SetAccessCodes(next.JSON()) },
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return nil, err
	}
	return v.Codes.Find(number), nil
}

// errUnchanged ends an act that changes nothing.
var errUnchanged = fmt.Errorf("nothing changes")

// Code is a code of a batch.
type Code struct {
	Number  int
	Text    string
	Revoked bool
}

// Codes returns at most first codes of a batch after a number, and records who reads them. There are none
// without the key of the batch. Refusal: NOT_FOUND.
func (s *Service) Codes(ctx context.Context, by sale.Actor, batch BatchRef, after, first int) ([]Code, error) {
	v, b, err := s.batch(ctx, by, batch)
	if err != nil {
		return nil, err
	}
	return s.codes(v, b, after, first), nil
}

// BatchRef names a batch of codes.
type BatchRef struct {
	Sale   id.Sale
	Number int
}

// batch returns a batch whose codes an operator may read, and records it.
func (s *Service) batch(ctx context.Context, by sale.Actor, ref BatchRef) (*sale.Sale, *access.Batch, error) {
	if err := requireStaff(by); err != nil {
		return nil, nil, err
	}
	v, err := s.cfg.Sales.ByID(ctx, ref.Sale)
	if err != nil {
		return nil, nil, err
	}
	if v == nil {
		return nil, nil, unknown("saleId")
	}
	b := v.Codes.Find(ref.Number)
	if b == nil {
		return nil, nil, unknown("batch")
	}
	s.audit(ctx, by.ID, account.EventCodes, fmt.Sprintf("%s batch %d", ref.Sale.Public(), ref.Number))
	return v, b, nil
}

func (s *Service) codes(v *sale.Sale, b *access.Batch, after, first int) (list []Code) {
	if !s.cfg.Codes.Knows(b) {
		return nil
	}
	for n := after + 1; n <= min(b.Codes, after+first); n++ {
		list = append(list, Code{Number: n, Text: s.cfg.Codes.Text(v.ID, b, n), Revoked: b.Revokes(n)})
	}
	return list
}

// downloadCodes sends the codes of a batch that are not revoked as CSV for spreadsheets.
func (s *Service) downloadCodes(w http.ResponseWriter, r *http.Request, by sale.Actor) error {
	query := r.URL.Query()
	saleID, _ := id.ParseSale(query.Get("sale")) // no sale has the zero id of a malformed one
	number, _ := strconv.Atoi(query.Get("batch"))
	v, b, err := s.batch(r.Context(), by, BatchRef{Sale: saleID, Number: number})
	if err != nil {
		return err
	}
	headers(w, fmt.Sprintf("%s-codes-%d.csv", v.Slug, b.Number))
	out, err := spreadsheet.NewWriter(deadlineWriter{w})
	if err == nil {
		err = out.Write([]string{"number", "code", "source", "uses"})
	}
	for _, code := range s.codes(v, b, 0, b.Codes) {
		if err == nil && !code.Revoked {
			err = out.Write([]string{strconv.Itoa(code.Number), code.Text, b.Source, strconv.Itoa(b.Uses)})
		}
	}
	if err == nil {
		out.Flush()
		err = out.Error()
	}
	s.brokeOff(r.Context(), err)
	return nil
}
