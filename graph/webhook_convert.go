package graph

import (
	"encoding/json"
	"fmt"
	"strings"

	"seckill/graph/model"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
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
	kinds := collect.Map(names, func(name model.WebhookEventKind) webhook.Kind {
		return webhook.Kind(strings.ToLower(strings.Replace(string(name), "_", ".", 1)))
	})
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
	return collect.Map(list, toEndpoint)
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

// deliveryPage parses the arguments of the webhookDeliveries query.
func deliveryPage(endpoint string, first int, after *string, state *webhook.DeliveryState) (in webhook.DeliveriesInput,
	err error) {
	in = webhook.DeliveriesInput{Limit: first, State: state}
	in.Endpoint, _ = id.ParseEndpoint(endpoint) // no endpoint has the zero id of a malformed one
	in.After, err = cursor.Parse(after, id.ParseDelivery)
	return in, err
}

func toDeliveryConnection(page []*webhook.Delivery, more, before bool) *model.WebhookDeliveryConnection {
	out := toPage(pageOf(page, func(d *webhook.Delivery) string { return d.ID.Public() }, more, before), toDelivery,
		func(n *model.WebhookDelivery, cursor string) *model.WebhookDeliveryEdge {
			return &model.WebhookDeliveryEdge{Cursor: cursor, Node: n}
		})
	return &model.WebhookDeliveryConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info}
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
	out := toPage(pageOf(page, func(e webhook.Record) string { return e.Cursor.String() }, more, before),
		func(e webhook.Record) *model.WebhookEvent {
			return &model.WebhookEvent{
				ID: e.ID, Event: toEventKind(e.Kind), Subject: e.Subject, Payload: string(e.Payload), CreatedAt: e.At,
			}
		}, func(n *model.WebhookEvent, cursor string) *model.WebhookEventEdge {
			return &model.WebhookEventEdge{Cursor: cursor, Node: n}
		})
	return &model.WebhookEventConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info}
}

// orderEvent is the data of an event of an order. Its metadata is an object there, and a
// list in the API.
type orderEvent struct {
	model.OrderEventData
	Metadata map[string]string `json:"metadata"`
}

// toEventData returns the data of an event in the types of the API, whose fields have the
// names of those in the body.
func toEventData(kind model.WebhookEventKind, body string) (model.WebhookEventData, error) {
	switch kind {
	case model.WebhookEventKindSaleStateChanged:
		return decoded[model.SaleStateEventData](body)
	case model.WebhookEventKindStockLow:
		return decoded[model.StockLowEventData](body)
	case model.WebhookEventKindPaymentUnmatched:
		data, err := decoded[model.UnmatchedPaymentEventData](body)
		setDigits(data.Amount)
		return data, err
	default: // the events of orders
	}
	event, err := decoded[orderEvent](body)
	data := event.OrderEventData
	data.Metadata = toMetadata(event.Metadata)
	setDigits(data.UnitPrice, data.Total, data.RefundedAmount)
	if data.Refund != nil {
		setDigits(data.Refund.Amount)
	}
	return data, err
}

func decoded[T any](body string) (T, error) {
	var event struct{ Data T }
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		return event.Data, fmt.Errorf("read the body of an event: %w", err)
	}
	return event.Data, nil
}

// setDigits sets the decimals of amounts, which the body of an event does not have.
func setDigits(amounts ...*model.Money) {
	for _, m := range amounts {
		if m != nil {
			m.FractionDigits = money.Amount{Currency: m.CurrencyCode}.Digits()
		}
	}
}
