package graph

import (
	"context"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/orderintake"
)

func toTicket(t *queue.Ticket) *model.QueueTicket {
	if t == nil {
		return nil
	}
	out := &model.QueueTicket{
		ID: t.ID, Status: t.Status, Position: toPosition(t), Source: t,
	}
	if t.Ended != "" {
		out.EndReason = &t.Ended
	}
	if t.Path != nil {
		out.Path = toPath(*t.Path)
	}
	return out
}

// toPositionedTask returns a task with its position among the orders that wait for a worker.
func toPositionedTask(ctx context.Context, p orderintake.PositionedTask) *model.OrderTask {
	out := toTask(ctx, p.Task)
	out.Position = p.Position
	return out
}

func toOrderQueue(p *orderintake.QueuePosition) *model.OrderQueue {
	if p == nil {
		return nil
	}
	return &model.OrderQueue{Ahead: p.Ahead, Estimate: toSeconds(p.Wait)}
}

func toSeconds(d *time.Duration) *int {
	if d == nil {
		return nil
	}
	seconds := int(d.Seconds())
	return &seconds
}

func toPosition(t *queue.Ticket) *model.QueuePosition {
	p := t.Position
	if p == nil {
		return nil
	}
	out := &model.QueuePosition{Ahead: p.Ahead, ChancePercent: p.Chance, EtaSeconds: toSeconds(p.Wait), UpdatedAt: t.At}
	if p.Span != nil {
		out.Wait = &model.QueueWait{FromSeconds: int(p.Span.From.Seconds()), ToSeconds: int(p.Span.To.Seconds())}
	}
	return out
}
