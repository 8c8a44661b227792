package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/model"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/telemetry"
)

// refused converts the error of a mutation. A refusal becomes userErrors of the payload
// that the resolver returned beside it, nil = an empty one; other errors stay errors.
func (r *Resolver) refused(ctx context.Context, payload any, err error) (any, error) {
	refusal, ok := fault.AsRefusal(err)
	if !ok {
		return nil, err
	}
	field := graphql.GetFieldContext(ctx).Field.Name
	telemetry.OperationFrom(ctx).Fail(string(refusal.Reason()))
	set, ok := payloads[field]
	if !ok {
		return nil, fmt.Errorf("no payload is known for %s: %w", field, err)
	}
	var errs []model.UserError
	for _, each := range fault.Each(refusal) {
		errs = append(errs, r.userError(ctx, each))
	}
	return set(payload, errs), nil
}

// setUserErrors sets the userErrors of a payload, or of a new one when it is nil, and
// returns the payload.
type setUserErrors func(payload any, errs []model.UserError) any

func userErrorsOf[P any](list func(*P) *[]model.UserError) setUserErrors {
	return func(payload any, errs []model.UserError) any {
		p, _ := payload.(*P)
		if p == nil {
			p = new(P)
		}
		*list(p) = errs
		return p
	}
}

// payloads maps mutation fields to their payloads.
var payloads = map[string]setUserErrors{
	"register":               userErrorsOf(func(p *model.RegisterPayload) *[]model.UserError { return &p.UserErrors }),
	"login":                  userErrorsOf(func(p *model.LoginPayload) *[]model.UserError { return &p.UserErrors }),
	"refreshSession":         userErrorsOf(func(p *model.RefreshSessionPayload) *[]model.UserError { return &p.UserErrors }),
	"logout":                 userErrorsOf(func(p *model.LogoutPayload) *[]model.UserError { return &p.UserErrors }),
	"createCaptcha":          userErrorsOf(func(p *model.CreateCaptchaPayload) *[]model.UserError { return &p.UserErrors }),
	"issueSeckillPath":       userErrorsOf(func(p *model.IssueSeckillPathPayload) *[]model.UserError { return &p.UserErrors }),
	"enterQueue":             userErrorsOf(func(p *model.EnterQueuePayload) *[]model.UserError { return &p.UserErrors }),
	"leaveQueue":             userErrorsOf(func(p *model.LeaveQueuePayload) *[]model.UserError { return &p.UserErrors }),
	"joinWaitlist":           userErrorsOf(func(p *model.JoinWaitlistPayload) *[]model.UserError { return &p.UserErrors }),
	"leaveWaitlist":          userErrorsOf(func(p *model.LeaveWaitlistPayload) *[]model.UserError { return &p.UserErrors }),
	"placeOrder":             userErrorsOf(func(p *model.PlaceOrderPayload) *[]model.UserError { return &p.UserErrors }),
	"payOrder":               userErrorsOf(func(p *model.PayOrderPayload) *[]model.UserError { return &p.UserErrors }),
	"cancelOrder":            userErrorsOf(func(p *model.CancelOrderPayload) *[]model.UserError { return &p.UserErrors }),
	"requestRefund":          userErrorsOf(func(p *model.RequestRefundPayload) *[]model.UserError { return &p.UserErrors }),
	"decideRefund":           userErrorsOf(func(p *model.DecideRefundPayload) *[]model.UserError { return &p.UserErrors }),
	"createGoods":            userErrorsOf(func(p *model.CreateGoodsPayload) *[]model.UserError { return &p.UserErrors }),
	"updateGoods":            userErrorsOf(func(p *model.UpdateGoodsPayload) *[]model.UserError { return &p.UserErrors }),
	"createSale":             userErrorsOf(func(p *model.CreateSalePayload) *[]model.UserError { return &p.UserErrors }),
	"updateSale":             userErrorsOf(func(p *model.UpdateSalePayload) *[]model.UserError { return &p.UserErrors }),
	"withdrawSale":           userErrorsOf(func(p *model.WithdrawSalePayload) *[]model.UserError { return &p.UserErrors }),
	"discardSale":            userErrorsOf(func(p *model.DiscardSalePayload) *[]model.UserError { return &p.UserErrors }),
	"saveSaleTemplate":       userErrorsOf(func(p *model.SaveSaleTemplatePayload) *[]model.UserError { return &p.UserErrors }),
	"createSaleFromTemplate": userErrorsOf(func(p *model.CreateSaleFromTemplatePayload) *[]model.UserError { return &p.UserErrors }),
	"deleteSaleTemplate":     userErrorsOf(func(p *model.DeleteSaleTemplatePayload) *[]model.UserError { return &p.UserErrors }),
	"duplicateSale":          userErrorsOf(func(p *model.DuplicateSalePayload) *[]model.UserError { return &p.UserErrors }),
	"submitSale":             userErrorsOf(func(p *model.SubmitSalePayload) *[]model.UserError { return &p.UserErrors }),
	"approveSale":            userErrorsOf(func(p *model.ApproveSalePayload) *[]model.UserError { return &p.UserErrors }),
	"rejectSale":             userErrorsOf(func(p *model.RejectSalePayload) *[]model.UserError { return &p.UserErrors }),
	"scheduleSale":           userErrorsOf(func(p *model.ScheduleSalePayload) *[]model.UserError { return &p.UserErrors }),
	"preheatSale":            userErrorsOf(func(p *model.PreheatSalePayload) *[]model.UserError { return &p.UserErrors }),
	"pauseSale":              userErrorsOf(func(p *model.PauseSalePayload) *[]model.UserError { return &p.UserErrors }),
	"resumeSale":             userErrorsOf(func(p *model.ResumeSalePayload) *[]model.UserError { return &p.UserErrors }),
	"endSale":                userErrorsOf(func(p *model.EndSalePayload) *[]model.UserError { return &p.UserErrors }),
	"adjustStock":            userErrorsOf(func(p *model.AdjustStockPayload) *[]model.UserError { return &p.UserErrors }),
	"extendSale":             userErrorsOf(func(p *model.ExtendSalePayload) *[]model.UserError { return &p.UserErrors }),
	"expireOrder":            userErrorsOf(func(p *model.ExpireOrderPayload) *[]model.UserError { return &p.UserErrors }),
	"voidOrder":              userErrorsOf(func(p *model.VoidOrderPayload) *[]model.UserError { return &p.UserErrors }),
	"decideIntervention":     userErrorsOf(func(p *model.DecideInterventionPayload) *[]model.UserError { return &p.UserErrors }),
	"setSaleSwitches":        userErrorsOf(func(p *model.SetSaleSwitchesPayload) *[]model.UserError { return &p.UserErrors }),
	"replayDeadLetter":       userErrorsOf(func(p *model.ReplayDeadLetterPayload) *[]model.UserError { return &p.UserErrors }),
	"replayDeadLetters":      userErrorsOf(func(p *model.ReplayDeadLettersPayload) *[]model.UserError { return &p.UserErrors }),
	"dropDeadLetter":         userErrorsOf(func(p *model.DropDeadLetterPayload) *[]model.UserError { return &p.UserErrors }),
	"returnHeldPayment":      userErrorsOf(func(p *model.ReturnHeldPaymentPayload) *[]model.UserError { return &p.UserErrors }),
	"settleHeldPayment":      userErrorsOf(func(p *model.SettleHeldPaymentPayload) *[]model.UserError { return &p.UserErrors }),
	"changePassword":         userErrorsOf(func(p *model.ChangePasswordPayload) *[]model.UserError { return &p.UserErrors }),
	"setUserRole":            userErrorsOf(func(p *model.SetUserRolePayload) *[]model.UserError { return &p.UserErrors }),
	"disableUser":            userErrorsOf(func(p *model.DisableUserPayload) *[]model.UserError { return &p.UserErrors }),
	"enableUser":             userErrorsOf(func(p *model.EnableUserPayload) *[]model.UserError { return &p.UserErrors }),
	"endUserSessions":        userErrorsOf(func(p *model.EndUserSessionsPayload) *[]model.UserError { return &p.UserErrors }),
	"saveAddress":            userErrorsOf(func(p *model.SaveAddressPayload) *[]model.UserError { return &p.UserErrors }),
	"removeAddress":          userErrorsOf(func(p *model.RemoveAddressPayload) *[]model.UserError { return &p.UserErrors }),
	"updateNoticeSettings":   userErrorsOf(func(p *model.UpdateNoticeSettingsPayload) *[]model.UserError { return &p.UserErrors }),
	"subscribePush":          userErrorsOf(func(p *model.SubscribePushPayload) *[]model.UserError { return &p.UserErrors }),
	"unsubscribePush":        userErrorsOf(func(p *model.UnsubscribePushPayload) *[]model.UserError { return &p.UserErrors }),
	"remindMe":               userErrorsOf(func(p *model.RemindMePayload) *[]model.UserError { return &p.UserErrors }),
	"forgetReminder":         userErrorsOf(func(p *model.ForgetReminderPayload) *[]model.UserError { return &p.UserErrors }),
	"setFulfilment":          userErrorsOf(func(p *model.SetFulfilmentPayload) *[]model.UserError { return &p.UserErrors }),
	"startTotp":              userErrorsOf(func(p *model.StartTotpPayload) *[]model.UserError { return &p.UserErrors }),
	"confirmTotp":            userErrorsOf(func(p *model.ConfirmTotpPayload) *[]model.UserError { return &p.UserErrors }),
	"removeTotp":             userErrorsOf(func(p *model.RemoveTotpPayload) *[]model.UserError { return &p.UserErrors }),
	"correctRecipient":       userErrorsOf(func(p *model.CorrectRecipientPayload) *[]model.UserError { return &p.UserErrors }),
	"settleRefund":           userErrorsOf(func(p *model.SettleRefundPayload) *[]model.UserError { return &p.UserErrors }),

	"requestEmail":         userErrorsOf(func(p *model.RequestEmailPayload) *[]model.UserError { return &p.UserErrors }),
	"confirmEmail":         userErrorsOf(func(p *model.ConfirmEmailPayload) *[]model.UserError { return &p.UserErrors }),
	"requestPasswordReset": userErrorsOf(func(p *model.RequestPasswordResetPayload) *[]model.UserError { return &p.UserErrors }),
	"resetPassword":        userErrorsOf(func(p *model.ResetPasswordPayload) *[]model.UserError { return &p.UserErrors }),
	"exportPersonalData":   userErrorsOf(func(p *model.ExportPersonalDataPayload) *[]model.UserError { return &p.UserErrors }),
	"deleteAccount":        userErrorsOf(func(p *model.DeleteAccountPayload) *[]model.UserError { return &p.UserErrors }),

	"upsertGoods":        userErrorsOf(func(p *model.UpsertGoodsPayload) *[]model.UserError { return &p.UserErrors }),
	"upsertSale":         userErrorsOf(func(p *model.UpsertSalePayload) *[]model.UserError { return &p.UserErrors }),
	"setOrderMetadata":   userErrorsOf(func(p *model.SetOrderMetadataPayload) *[]model.UserError { return &p.UserErrors }),
	"setUserExternalId":  userErrorsOf(func(p *model.SetUserExternalIDPayload) *[]model.UserError { return &p.UserErrors }),
	"createServiceToken": userErrorsOf(func(p *model.CreateServiceTokenPayload) *[]model.UserError { return &p.UserErrors }),
	"revokeServiceToken": userErrorsOf(func(p *model.RevokeServiceTokenPayload) *[]model.UserError { return &p.UserErrors }),

	"createWebhookEndpoint": userErrorsOf(func(p *model.CreateWebhookEndpointPayload) *[]model.UserError { return &p.UserErrors }),
	"updateWebhookEndpoint": userErrorsOf(func(p *model.UpdateWebhookEndpointPayload) *[]model.UserError { return &p.UserErrors }),
	"rotateWebhookSecret":   userErrorsOf(func(p *model.RotateWebhookSecretPayload) *[]model.UserError { return &p.UserErrors }),
	"deleteWebhookEndpoint": userErrorsOf(func(p *model.DeleteWebhookEndpointPayload) *[]model.UserError { return &p.UserErrors }),
	"replayWebhookDelivery": userErrorsOf(func(p *model.ReplayWebhookDeliveryPayload) *[]model.UserError { return &p.UserErrors }),
}
