package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/identity/recipient"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
)

func toRecipient(r *recipient.Recipient) *model.Recipient {
	if r == nil {
		return nil
	}
	return &model.Recipient{
		Name: r.Name, Phone: r.Phone, Country: r.Country, Region: unlessZero(r.Region), City: r.City, Street: r.Street,
		PostalCode: unlessZero(r.PostalCode),
	}
}

func toAddress(a recipient.Address) *model.Address {
	return &model.Address{ID: a.ID, Default: a.Default, Recipient: toRecipient(&a.Recipient)}
}

func toAddresses(list []recipient.Address) []*model.Address {
	out := make([]*model.Address, len(list))
	for i, a := range list {
		out[i] = toAddress(a)
	}
	return out
}

// address parses the input of saveAddress; without an id, it is a new address.
func address(in model.SaveAddressInput) (recipient.Address, error) {
	a := recipient.Address{Recipient: recipient.Recipient{
		Name: in.Name, Phone: in.Phone, Country: in.Country, Region: deref(in.Region), City: in.City, Street: in.Street,
		PostalCode: deref(in.PostalCode),
	}}
	if in.AddressID == nil {
		return a, nil
	}
	var err error
	a.ID, err = addressID(*in.AddressID)
	return a, err
}

// correction parses the input of correctRecipient. Who bought the order decides whether the
// caller is its buyer.
func correction(in model.CorrectRecipientInput) (order.Correction, error) {
	orderID, err := id.ParseOrder(in.OrderID)
	if err != nil {
		return order.Correction{}, unknown("orderId")
	}
	return order.Correction{Order: orderID, Reason: deref(in.Reason), Recipient: recipient.Recipient{
		Name: in.Name, Phone: in.Phone, Country: in.Country, Region: deref(in.Region), City: in.City, Street: in.Street,
		PostalCode: deref(in.PostalCode),
	}}, nil
}

// corrector returns the caller as the one who corrects an order: staff, unless it is their own.
func corrector(ctx context.Context, buyer id.User) order.Actor {
	p := auth.PrincipalFrom(ctx)
	if p.UserID != buyer && reads(ctx, auth.OrdersWrite) {
		return order.Actor{Kind: order.Operator, User: p.UserID}
	}
	return order.Actor{Kind: order.Buyer, User: p.UserID}
}

func addressID(text string) (id.Address, error) {
	u, err := id.ParseAddress(text)
	if err != nil {
		return u, unknown("addressId")
	}
	return u, nil
}

func toFulfilment(f *order.Fulfilment) *model.Fulfilment {
	if f == nil {
		return nil
	}
	return &model.Fulfilment{State: f.State, Carrier: unlessZero(f.Carrier), TrackingURL: unlessZero(f.TrackingURL),
		UpdatedAt: f.UpdatedAt}
}
