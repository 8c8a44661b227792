package payment

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/money"
)

// RequestRefused reports that a provider has refused the request itself, and has made no payment
// by it. The provider works: a repeated call would be refused again.
type RequestRefused struct{ Why error } // in the provider's words

// Error returns the provider's words.
func (e RequestRefused) Error() string { return "the request is refused: " + e.Why.Error() }

// Unwrap returns the provider's error.
func (e RequestRefused) Unwrap() error { return e.Why }

// Refusal wraps the error of a call by its HTTP status: one of 4xx is a RequestRefused, unless a
// repeated call may be answered otherwise.
func Refusal(status int, err error) error {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return err
	}
	if err == nil || status < 400 || status > 499 {
		return err
	}
	return RequestRefused{err}
}

func isRequestRefused(err error) bool {
	_, ok := errors.AsType[RequestRefused](err)
	return ok
}

func (t Terms) takesAmount(a money.Amount) bool { return t.limit(a) == "" }

// limit returns the limit that an amount breaks, the same in all languages; "" = none.
func (t Terms) limit(a money.Amount) string {
	if t.Least != nil {
		least, ok := t.Least[a.Currency]
		if !ok {
			codes := make([]string, 0, len(t.Least))
			for code := range t.Least {
				codes = append(codes, code)
			}
			slices.Sort(codes)
			return strings.Join(codes, ", ")
		}
		if a.Minor < least {
			return "≥ " + money.Amount{Minor: least, Currency: a.Currency}.String()
		}
	}
	if most, ok := t.Most[a.Currency]; ok && a.Minor > most {
		return "≤ " + money.Amount{Minor: most, Currency: a.Currency}.String()
	}
	return ""
}

// CheckSale returns the limits of the providers that orders of a sale would break, by the fields
// of the sale; nil when each order can be paid at one of them. A test bank takes everything, and
// counts only where there is no other provider.
func (s *Service) CheckSale(v *sale.Sale) error {
	if err := s.CheckDraw(v.Draw); err != nil {
		return err
	}
	providers := slices.DeleteFunc(slices.Clone(s.cfg.Providers), func(p Provider) bool { return p.Terms().Test })
	if v.Draw.Authorize {
		providers = []Provider{s.authorizer()}
	}
	if len(providers) == 0 {
		return nil
	}
	var faults []error
	for i, item := range v.Items {
		for units := 1; units <= max(item.PurchaseLimit, 1); units++ {
			broken := brokenLimits(providers, item.Price.Times(units))
			if broken == "" {
				continue
			}
			field := "price"
			if units > 1 {
				field = "purchaseLimit" // fewer units can be paid
			}
			faults = append(faults, fault.BadField{
				At: []string{"items", strconv.Itoa(i), field}, Rule: fault.Rule{Code: fault.PayableCode, Bound: broken},
			})
			break
		}
	}
	return fault.All(faults...)
}

// CheckDraw refuses a draw that authorizes cards where no provider does.
func (s *Service) CheckDraw(r sale.DrawRules) error {
	if r.Authorize && s.authorizer() == nil {
		return fault.BadField{At: []string{"draw", "authorizeEntries"}, Rule: fault.NoAuthorizer}
	}
	return nil
}

// brokenLimits returns which limit of each provider an amount breaks; "" when one takes it.
func brokenLimits(providers []Provider, a money.Amount) string {
	var broken []string
	for _, p := range providers {
		limit := p.Terms().limit(a)
		if limit == "" {
			return ""
		}
		if text := p.Name() + " " + limit; !slices.Contains(broken, text) {
			broken = append(broken, text)
		}
	}
	return a.String() + "; " + strings.Join(broken, "; ")
}

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
	for _, p := range s.cfg.Providers {
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
