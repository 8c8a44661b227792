package graph

import (
	"strings"

	"seckill/graph/model"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/id"
)

// toEventKind returns the name of a kind of event in the API: ORDER_PLACED for
// order.placed.
func toEventKind(k webhook.Kind) model.WebhookEventKind {
	return model.WebhookEventKind(strings.ToUpper(strings.ReplaceAll(string(k), ".", "_")))
}

// eventKinds returns the kinds with names of the API; nil for nil.
func eventKinds(names []model.WebhookEventKind) *[]webhook.Kind {
	if names == nil {
		return nil
	}
	kinds := make([]webhook.Kind, 0, len(names))
	for _, k := range webhook.Kinds() {
		for _, name := range names {
			if toEventKind(k) == name {
				kinds = append(kinds, k)
			}
		}
	}
	return &kinds
}

func toEndpoint(e *webhook.Endpoint) *model.WebhookEndpoint {
	if e == nil {
		return nil
	}
	out := &model.WebhookEndpoint{
		ID: e.ID, URL: e.URL, Description: e.Description, Events: []model.WebhookEventKind{}, State: e.State,
		FailingSince: e.FailingSince, FormerSecretUntil: e.RotatedUntil, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
	for _, k := range e.Kinds {
		out.Events = append(out.Events, toEventKind(k))
	}
	if e.Reason != "" {
		out.DisabledReason = &e.Reason
	}
	return out
}

func toEndpoints(list []*webhook.Endpoint) []*model.WebhookEndpoint {
	out := make([]*model.WebhookEndpoint, len(list))
	for i, e := range list {
		out[i] = toEndpoint(e)
	}
	return out
}

func toDelivery(d *webhook.Delivery) *model.WebhookDelivery {
	if d == nil {
		return nil
	}
	out := &model.WebhookDelivery{
		ID: d.ID, EndpointID: d.Endpoint, EventID: d.Event,
		Event: toEventKind(d.Kind), Subject: d.Subject, Payload: string(d.Payload), State: d.State, Attempts: d.Attempts,
		DurationMs: int(d.Duration.Milliseconds()), CreatedAt: d.CreatedAt, EndedAt: d.EndedAt,
	}
	if d.StatusCode != 0 {
		out.StatusCode = &d.StatusCode
	}
	if d.Error != "" {
		out.Error = &d.Error
	}
	if d.State == webhook.Pending {
		out.NextAttemptAt = &d.DueAt
	}
	return out
}

// deliveryPage parses the arguments of the webhookDeliveries query; false = there is no
// such endpoint.
func deliveryPage(endpoint string, first int, after *string, state *webhook.DeliveryState) (webhook.DeliveriesInput,
	bool, error) {
	in := webhook.DeliveriesInput{Limit: first, State: state}
	var err error
	if in.Endpoint, err = id.ParseEndpoint(endpoint); err != nil {
		return in, false, nil // no endpoint has such an id
	}
	in.After, err = cursor.Parse(after, id.ParseDelivery)
	return in, true, err
}

func toDeliveryConnection(page []*webhook.Delivery, more, before bool) *model.WebhookDeliveryConnection {
	out := &model.WebhookDeliveryConnection{Edges: make([]*model.WebhookDeliveryEdge, len(page))}
	cursors := make([]string, len(page))
	for i, d := range page {
		node := toDelivery(d)
		cursors[i] = node.ID.Public()
		out.Edges[i] = &model.WebhookDeliveryEdge{Cursor: node.ID.Public(), Node: node}
	}
	out.PageInfo = toPageInfo(cursors, more, before)
	return out
}

// endpointID parses the id of an endpoint in an input.
func endpointID(text string) (id.Endpoint, error) {
	u, err := id.ParseEndpoint(text)
	if err != nil {
		return u, unknown("endpointId")
	}
	return u, nil
}

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
