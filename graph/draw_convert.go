package graph

import (
	"context"
	"encoding/hex"
	"strconv"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/gate/audit"
	"seckill/internal/platform/id"
)

// drawing returns the drawing of an item; nil in a rush.
func (r *Resolver) drawing(ctx context.Context, item *sale.Item) (*model.Drawing, error) {
	_, of, err := r.Shop.Item(ctx, item.ID)
	if err != nil || of == nil || !of.Draw.On() {
		return nil, err
	}
	d, err := r.Shop.Drawing(ctx, of, item.ID)
	if err != nil {
		return nil, err
	}
	if d == nil {
		state := waitlist.TakesEntries
		if !r.Shop.Now().Before(of.EntriesCloseAt()) {
			state = waitlist.EntriesClosed
		}
		return &model.Drawing{State: state}, nil
	}
	return r.toDrawing(d), nil
}

func (r *Resolver) toDrawing(d *waitlist.Drawing) *model.Drawing {
	out := &model.Drawing{State: d.State, Entries: d.Entries, DrawnAt: d.DrawnAt}
	if d.PublishedAt == nil {
		return out
	}
	root, path := hex.EncodeToString(d.Root), waitlist.RecordPath(d.Item)
	out.Root, out.RecordPath, out.SignedRoot, out.Source = &root, &path, unlessZero(d.Statement), unlessZero(d.Source)
	if d.Round > 0 {
		round, at := strconv.FormatUint(d.Round, 10), r.Waitlist.RoundTime(d.Round)
		out.Round, out.RoundAt = &round, &at
	}
	out.Signature = unlessZero(hex.EncodeToString(d.Signature))
	out.Value, out.ValueSource = unlessZero(d.Value), unlessZero(d.ValueSource)
	return out
}

// drawEntries returns the entries of the draw of an item over time; nil in a rush.
func (r *Resolver) drawEntries(ctx context.Context, item id.Item) (*model.DrawEntries, error) {
	_, of, err := r.Shop.Item(ctx, item)
	if err != nil || of == nil || !of.Draw.On() {
		return nil, err
	}
	every, points, err := r.Waitlist.EntriesOverTime(ctx, item, time.Duration(of.Draw.EntrySeconds)*time.Second)
	if err != nil {
		return nil, err
	}
	out := &model.DrawEntries{Seconds: int(every.Seconds()), Points: make([]*model.DrawEntriesPoint, len(points))}
	for i, p := range points {
		out.Points[i] = &model.DrawEntriesPoint{At: p.At, Entries: p.Entries}
	}
	return out, nil
}

// drawRules parses the rules of a draw; the zero rules are those of a rush.
func drawRules(in *model.SaleDrawInput) sale.DrawRules {
	if in == nil {
		return sale.DrawRules{}
	}
	return sale.DrawRules{EntrySeconds: in.EntrySeconds, OfferSeconds: in.OfferSeconds, Authorize: in.AuthorizeEntries}
}

func (r *Resolver) draw(ctx context.Context, item *sale.Item) (*model.Draw, error) {
	if len(item.DrawSeed) == 0 {
		return nil, nil
	}
	out := &model.Draw{Commitment: item.DrawSeed.Commitment()}
	seed, err := r.Shop.PublicSeed(ctx, item.ID)
	if len(seed) > 0 {
		text := seed.Hex()
		out.Seed = &text
	}
	return out, err
}

func (r *Resolver) ticketDraw(ctx context.Context, t *queue.Ticket) (*model.TicketDraw, error) {
	if t.Nonce == "" {
		return nil, nil
	}
	out := &model.TicketDraw{Nonce: t.Nonce}
	seed, err := r.Shop.PublicSeed(ctx, t.Item)
	if len(seed) > 0 {
		number := strconv.FormatUint(seed.Number(t.Nonce), 10)
		out.Number = &number
	}
	return out, err
}

func toSeal(s *audit.Seal) *model.LogSeal {
	if s == nil {
		return nil
	}
	return &model.LogSeal{Number: int(s.Seq), Head: s.Head, Entries: s.Entries, At: s.At}
}
