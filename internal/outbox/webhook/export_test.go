package webhook

import (
	"context"
	"net/netip"

	"seckill/ent/webhookendpoint"
)

// Step dispatches events and sends all due deliveries, and returns after the last one.
func (s *Service) Step(ctx context.Context) error {
	if _, err := s.dispatch(ctx); err != nil {
		return err
	}
	endpoints, err := s.cfg.DB.Ent.WebhookEndpoint.Query().
		Where(webhookendpoint.StateEQ(webhookendpoint.StateENABLED)).IDs(ctx)
	if err != nil {
		return err
	}
	for _, endpoint := range endpoints {
		for n := 1; n > 0; {
			if n, err = s.sendSome(ctx, endpoint); err != nil {
				return err
			}
		}
	}
	return nil
}

// Allows reports whether requests may be sent to an address, given the private networks
// that are allowed.
func Allows(addr string, networks ...netip.Prefix) bool {
	return newTarget(networks).allows(addr) == nil
}

// Lease is how long a claimed delivery belongs to its process.
const Lease = lease
