package graph

import (
	"seckill/graph/model"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/cursor"
)

// eventPage parses the arguments of the events query.
func eventPage(first int, after *string, kinds []model.WebhookEventKind) (webhook.EventsInput, error) {
	from, err := cursor.Parse(after, webhook.ParseCursor)
	return webhook.EventsInput{After: from, Limit: first, Kinds: *eventKinds(kinds)}, err
}

func toEventConnection(page []webhook.Record, more, before bool) *model.WebhookEventConnection {
	out := &model.WebhookEventConnection{Edges: make([]*model.WebhookEventEdge, len(page))}
	cursors := make([]string, len(page))
	for i, e := range page {
		cursors[i] = e.Cursor.String()
		out.Edges[i] = &model.WebhookEventEdge{Cursor: cursors[i], Node: &model.WebhookEvent{
			ID: e.ID, Event: toEventKind(e.Kind), Subject: e.Subject, Payload: string(e.Payload), CreatedAt: e.At,
		}}
	}
	out.PageInfo = toPageInfo(cursors, more, before)
	return out
}
