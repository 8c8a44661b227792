package graph

import (
	"seckill/graph/model"
	"seckill/internal/admission/queue"
	"seckill/internal/id"
)

func toTicket(t *queue.Ticket) *model.QueueTicket {
	if t == nil {
		return nil
	}
	out := &model.QueueTicket{
		ID: id.Format(id.Ticket, t.ID), Status: t.Status, Position: toPosition(t), Source: t,
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
