package graph

import (
	"context"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/identity/account"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
)

// inputFaults returns all faults of the input of a mutation, as its domain sees them; nil
// where the domain has no rules beside the schema's, and for a Resolver without domains.
func (r *Resolver) inputFaults(ctx context.Context, input any) error {
	if r.Operator == nil {
		return nil
	}
	switch in := input.(type) {
	case model.RegisterInput:
		return r.Accounts.CheckNew(newUser(in))
	case model.RequestRefundInput:
		return r.refundFaults(ctx, in)
	case model.SaveAddressInput:
		a, _ := address(in) // an unknown id is refused by Save
		_, err := a.Recipient.Ready()
		return err
	case model.CorrectRecipientInput:
		c, err := correction(in)
		_, faults := c.Recipient.Ready()
		return fault.All(err, faults)
	case model.SetFulfilmentInput:
		return fulfilment(in).Check()
	case model.SubscribePushInput:
		return r.Notices.CheckSubscription(subscription(in))
	case model.CreateServiceTokenInput:
		return tokenInput(in).Check()
	case model.CreateWebhookEndpointInput:
		return r.Webhooks.CheckInput(webhook.EndpointInput{URL: &in.URL})
	case model.UpdateWebhookEndpointInput:
		return r.Webhooks.CheckInput(webhook.EndpointInput{URL: in.URL})
	}
	return r.staffInputFaults(ctx, input)
}

// staffInputFaults is inputFaults for products, sales and orders.
func (r *Resolver) staffInputFaults(ctx context.Context, input any) error {
	switch in := input.(type) {
	case model.CreateGoodsInput:
		return r.Operator.CheckGoods(ctx, goodsDraft(in))
	case model.UpdateGoodsInput:
		goodsID, err := id.ParseGoods(in.GoodsID)
		if err != nil {
			return unknown("goodsId")
		}
		return r.Operator.CheckGoodsUpdate(ctx, goodsID, goodsPatch(in))
	case model.UpsertGoodsInput:
		return r.Operator.CheckGoods(ctx, upsertedGoods(in))
	case model.CreateSaleInput:
		return r.Operator.CheckSale(ctx, saleDraft(in))
	case model.UpdateSaleInput:
		saleID, err := id.ParseSale(in.SaleID)
		if err != nil {
			return unknown("saleId")
		}
		return r.Operator.CheckSaleUpdate(ctx, saleID, salePatch(in))
	case model.UpsertSaleInput:
		return r.Operator.CheckUpsertSale(ctx, upsertedSale(in))
	case model.DuplicateSaleInput:
		return r.Operator.CheckTimes(in.StartsAt, in.EndsAt)
	case model.CreateSaleFromTemplateInput:
		return r.Operator.CheckTimes(in.StartsAt, deref(in.EndsAt))
	case model.SetSaleSwitchesInput:
		return switchesPatch(in).Check()
	}
	return r.runningInputFaults(ctx, input)
}

// runningInputFaults is inputFaults for what staff do to sales and orders.
func (r *Resolver) runningInputFaults(ctx context.Context, input any) error {
	switch in := input.(type) {
	case model.ScheduleSaleInput:
		given, err := scheduleInput(ctx, in)
		if err != nil {
			return err
		}
		return r.Operator.CheckSchedule(ctx, given)
	case model.ExtendSaleInput:
		given, err := extendInput(ctx, in)
		if err != nil {
			return err
		}
		return r.Operator.CheckExtension(ctx, given)
	case model.AdjustStockInput:
		given, err := adjustInput(ctx, in)
		return fault.All(err, operator.CheckAdjustment(given))
	case model.VoidOrderInput:
		given, err := voidInput(ctx, in)
		if err != nil {
			return err
		}
		return r.Operator.CheckVoid(ctx, given)
	}
	return nil
}

// refundFaults returns the faults of a refund request for an order that is the caller's.
func (r *Resolver) refundFaults(ctx context.Context, in model.RequestRefundInput) error {
	orderID, err := id.ParseOrder(in.OrderID)
	if err != nil {
		return unknown("orderId")
	}
	o, err := r.Orders.OrderFor(ctx, orderID, auth.PrincipalFrom(ctx).UserID, false)
	if err != nil {
		return err
	}
	if o == nil {
		return unknown("orderId")
	}
	_, err = payment.UnitsOf(o, in.Quantity)
	return err
}

func newUser(in model.RegisterInput) account.NewUser {
	return account.NewUser{Account: in.Account, Password: in.Password, DisplayName: in.DisplayName}
}

func subscription(in model.SubscribePushInput) notice.Subscription {
	return notice.Subscription{Endpoint: in.Endpoint, P256dh: in.P256dh, Auth: in.Auth, Label: deref(in.Label)}
}

func tokenInput(in model.CreateServiceTokenInput) servicetoken.Input {
	return servicetoken.Input{Name: in.Name, Scopes: in.Scopes, Life: time.Duration(in.ExpiresInDays) * 24 * time.Hour}
}

func fulfilment(in model.SetFulfilmentInput) order.Fulfilment {
	return order.Fulfilment{State: in.State, Carrier: deref(in.Carrier), TrackingURL: deref(in.TrackingURL)}
}

func scheduleInput(ctx context.Context, in model.ScheduleSaleInput) (operator.ScheduleInput, error) {
	saleID, err := id.ParseSale(in.SaleID)
	if err != nil {
		return operator.ScheduleInput{}, unknown("saleId")
	}
	return operator.ScheduleInput{
		By: actor(ctx), Sale: saleID, StartsAt: in.StartsAt, EndsAt: in.EndsAt, PreheatAt: in.PreheatAt, Note: deref(in.Note),
	}, nil
}

func extendInput(ctx context.Context, in model.ExtendSaleInput) (operator.ExtendInput, error) {
	saleID, err := id.ParseSale(in.SaleID)
	if err != nil {
		return operator.ExtendInput{}, unknown("saleId")
	}
	return operator.ExtendInput{By: actor(ctx), Sale: saleID, EndsAt: in.EndsAt, Note: in.Note}, nil
}

func adjustInput(ctx context.Context, in model.AdjustStockInput) (operator.AdjustInput, error) {
	itemID, err := id.ParseItem(in.ItemID)
	if err != nil {
		err = unknown("itemId")
	}
	return operator.AdjustInput{By: actor(ctx), Item: itemID, Units: in.Units, Note: in.Note, Key: in.IdempotencyKey}, err
}

func voidInput(ctx context.Context, in model.VoidOrderInput) (operator.VoidInput, error) {
	orderID, err := id.ParseOrder(in.OrderID)
	if err != nil {
		return operator.VoidInput{}, unknown("orderId")
	}
	return operator.VoidInput{By: actor(ctx), Order: orderID, Note: in.Note, Units: in.Quantity}, nil
}
