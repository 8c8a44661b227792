package graph

import (
	"context"
	"strconv"

	"seckill/graph/model"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/audit"
)

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
