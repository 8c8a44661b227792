package graph

import (
	"context"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/admission/queue"
	"seckill/internal/auth"
	"seckill/internal/id"
)

// ownTicket reads a place in a waiting room; nil when the caller has no such one.
func (r *Resolver) ownTicket(ctx context.Context, ticket uuid.UUID) (*queue.Ticket, error) {
	t, err := r.Queue.Ticket(ctx, ticket)
	if err != nil || t == nil || t.User != auth.PrincipalFrom(ctx).UserID {
		return nil, err
	}
	return t, nil
}

func toTicket(t *queue.Ticket) *model.QueueTicket {
	if t == nil {
		return nil
	}
	out := &model.QueueTicket{
		ID: id.Format(id.Ticket, t.ID), Status: model.QueueTicketStatus(t.Status), Position: toPosition(t), Source: t,
	}
	if t.Path != nil {
		out.Path = toPath(*t.Path)
	}
	return out
}

func toPosition(t *queue.Ticket) *model.QueuePosition {
	p := t.Position
	if p == nil {
		return nil
	}
	out := &model.QueuePosition{Ahead: p.Ahead, ChancePercent: p.Chance, UpdatedAt: t.At}
	if p.Wait != nil {
		seconds := int(p.Wait.Seconds())
		out.EtaSeconds = &seconds
	}
	return out
}
