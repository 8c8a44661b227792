package payment

import (
	"slices"

	"seckill/internal/order"
)

// Option is a provider that a buyer may choose.
type Option struct {
	ID string // the provider's name
	Terms
}

// Options returns the providers that take the money of an order, in the order of the
// settings, without those that are away; none while the order cannot be paid.
func (s *Service) Options(o *order.Order) []Option {
	if !slices.Contains(o.Actions(s.now()), order.ActionPay) {
		return nil
	}
	var options []Option
	for _, p := range s.offered {
		if terms := p.Terms(); terms.takes(o) && !s.breakers.away(p.Name(), s.now()) {
			options = append(options, Option{p.Name(), terms})
		}
	}
	return options
}

// Option returns the provider with a name. One that is not configured any more has that
// name as its label.
func (s *Service) Option(provider string) Option {
	if p, ok := s.providers[provider]; ok {
		return Option{provider, p.Terms()}
	}
	return Option{provider, Terms{Label: Label{English: provider}, Kind: Redirect}}
}
