package operator

import (
	"context"

	"seckill/ent"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// DrawValueInput is the input of EnterDrawValue.
type DrawValueInput struct {
	By     sale.Actor
	Item   id.Item
	Value  string // the public value, as its source publishes it
	Source string // where anybody can read it
	Note   string
}

// drawValue is the random value of a draw.
type drawValue struct {
	Value  string `json:"value"`
	Source string `json:"source"`
}

// changes returns what the log has of the value.
func (v drawValue) changes() changes {
	c := changes{}
	put(c, "drawValue", "", v.Value)
	put(c, "drawValueSource", "", v.Source)
	return c
}

// EnterDrawValue requests that a public value orders the entries of a draw, in an installation
// that reaches no beacon. It always needs a second person. CONFLICT unless the root of the draw has
// been public for draw.ValueDelay, and before its value is known.
func (s *Service) EnterDrawValue(ctx context.Context, in DrawValueInput) (*Intervention, error) {
	if err := authorise(in.By, sale.ActValue); err != nil {
		return nil, err
	}
	if err := fault.All(line(&in.Value, "value"), line(&in.Source, "source"), requireNote(&in.Note)); err != nil {
		return nil, err
	}
	d, err := s.cfg.Waitlist.Drawing(ctx, in.Item)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return nil, unknown("itemId")
	case !d.TakesValue(s.cfg.Clock.Now()):
		return nil, conflict("itemId")
	}
	asks := storedChange{Value: &drawValue{Value: in.Value, Source: in.Source}}
	if err := asks.settle(asks.Value.changes(), nil); err != nil {
		return nil, err
	}
	value := &Intervention{Kind: DrawValue, Sale: d.Sale, Item: in.Item, Note: in.Note, RequestedBy: in.By.ID}
	asked, err := s.ask(ctx, value, asks)
	s.reportChange(ctx)
	return asked, err
}

// setDrawValue sets the value of a confirmed request, unless the draw has one already.
func (s *Service) setDrawValue(ctx context.Context, by sale.Actor, v drawValue, request *Intervention) error {
	details := v.changes()
	request.persons(details)
	_, err := s.do(ctx, act{
		by: by, sale: request.Sale, what: sale.ActValue, note: request.Note, details: &details,
		decide: func(v *sale.Sale) (sale.Status, error) { return v.Status, nil },
		within: func(ctx context.Context, tx *ent.Tx, _ *sale.Sale) error {
			set, err := s.cfg.Waitlist.SetValue(ctx, tx, request.Item, v.Value, v.Source)
			switch {
			case err != nil:
				return err
			case !set:
				return errChangedMeanwhile
			}
			return s.advance(ctx, tx, request, Done)
		},
	})
	return err
}
