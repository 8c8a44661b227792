package stripe

import (
	"context"
	"fmt"
	"slices"

	api "github.com/stripe/stripe-go/v85"
)

// reported are the types of events that an endpoint has to send, as docs/payments.md lists them. The
// others of kinds are of former versions of the API.
var reported = []api.EventType{
	api.EventTypeCheckoutSessionCompleted, api.EventTypeCheckoutSessionExpired,
	api.EventTypeCheckoutSessionAsyncPaymentSucceeded, api.EventTypeCheckoutSessionAsyncPaymentFailed,
	api.EventTypePaymentIntentSucceeded, api.EventTypePaymentIntentCanceled,
	api.EventTypePaymentIntentAmountCapturableUpdated, api.EventTypePaymentIntentPaymentFailed,
	api.EventTypeSetupIntentSucceeded, api.EventTypeChargeRefunded, api.EventTypeRefundFailed,
	api.EventTypeChargeDisputeCreated, api.EventTypeChargeDisputeClosed,
}

// Unreported returns the types of events that the enabled endpoints at an address do not send; all of
// them without an endpoint. The key may not be permitted to read endpoints.
func (p *Provider) Unreported(ctx context.Context, at string) (missing []string, err error) {
	sent := map[string]bool{}
	for endpoint, err := range p.client.V1WebhookEndpoints.List(ctx, &api.WebhookEndpointListParams{}).All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("read webhook endpoints: %w", refusal(err))
		}
		if endpoint.URL == at && endpoint.Status == "enabled" {
			for _, event := range endpoint.EnabledEvents {
				sent[event] = true
			}
		}
	}
	for _, event := range reported {
		if !sent[string(event)] && !sent["*"] {
			missing = append(missing, string(event))
		}
	}
	slices.Sort(missing)
	return missing, nil
}
