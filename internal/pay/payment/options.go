package payment

import (
	"slices"

	"seckill/internal/buy/order"
)

// Option is a provider that a buyer may choose.
type Option struct {
	ID   string // the provider's name
	Away bool   // its calls fail: it cannot be chosen now
	Terms
}

// Options returns the providers that take the money of an order, in the order of the
// settings, without those that are away; none while the order cannot be paid.
func (s *Service) Options(o *order.Order) []Option {
	return slices.DeleteFunc(s.AllOptions(o), func(option Option) bool { return option.Away })
}

// AllOptions returns the options of an order with those that are away.
func (s *Service) AllOptions(o *order.Order) []Option {
	if !slices.Contains(o.Actions(s.now()), order.ActionPay) {
		return nil
	}
	var options []Option
	for _, p := range s.offered {
		if terms := p.Terms(); terms.takes(o) {
			options = append(options, Option{ID: p.Name(), Away: s.breakers.away(p.Name(), s.now()), Terms: terms})
		}
	}
	return options
}

// Option returns the provider with a name. One that is not configured any more has that
// name as its label.
func (s *Service) Option(provider string) Option {
	if p, ok := s.providers[provider]; ok {
		return Option{ID: provider, Terms: p.Terms()}
	}
	return Option{ID: provider, Terms: Terms{Label: Label{English: provider}, Kind: Redirect}}
}

// Embedding returns what a page needs to take a payment that can be paid on it now; false for
// others.
func (s *Service) Embedding(p *Payment) (Embedding, bool) {
	provider, ok := s.providers[p.Provider].(Embedder)
	if !ok || p.Status != Pending || p.ClientSecret == "" {
		return Embedding{}, false
	}
	return provider.Embedding()
}
