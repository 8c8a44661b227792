// Package setup builds the payment providers that the settings name. It does not own the settings
// (package config), nor what a provider does.
package setup

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/alipay"
	"seckill/internal/pay/payment/signed"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/pay/payment/wechat"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
)

// callTimeout bounds one call over another transport, below the timeout of package payment.
const callTimeout = 4 * time.Second

// Providers returns the payment providers that are set up, in the order in which
// buyers see them. It calls nothing; an error names a key that cannot be read. transport carries
// the calls of their services; nil = http.DefaultTransport.
func Providers(
	cfg *config.Config, shop string, c clock.Clock, transport http.RoundTripper,
) ([]payment.Provider, error) {
	var client *http.Client // nil = the provider's own
	if transport != nil {
		client = &http.Client{Transport: transport, Timeout: callTimeout}
	}
	var list []payment.Provider
	if cfg.StripeKey != "" {
		list = append(list, stripe.New(stripe.Config{
			Key: cfg.StripeKey.Reveal(), WebhookSecret: cfg.StripeWebhookSecret.Reveal(), APIURL: cfg.StripeAPIURL,
			Client: client, Clock: c,
			PublishableKey: cfg.StripePublishableKey, ScriptURL: cfg.StripeScriptURL,
		}))
	}
	if cfg.WeChatMerchantID != "" {
		qr, phone, err := wechat.New(wechat.Config{
			AppID: cfg.WeChatAppID, MerchantID: cfg.WeChatMerchantID, MerchantSerial: cfg.WeChatMerchantSerial,
			MerchantKey: cfg.WeChatMerchantKey.Reveal(),
			APIKey:      cfg.WeChatAPIKey.Reveal(), PlatformKey: cfg.WeChatPlatformKey.Reveal(),
			PlatformKeyID: cfg.WeChatPlatformKeyID,
			APIURL:        cfg.WeChatAPIURL, ShopURL: shop, Client: client, Clock: c,
		})
		if err != nil {
			return list, fmt.Errorf("WeChat Pay: %w", err)
		}
		if list = append(list, qr); cfg.WeChatH5 == config.SwitchOn {
			list = append(list, phone)
		}
	}
	if cfg.AlipayAppID != "" {
		qr, phone, err := alipay.New(alipay.Config{
			AppID: cfg.AlipayAppID, Key: cfg.AlipayKey.Reveal(), AlipayKey: cfg.AlipayPublicKey.Reveal(),
			APIURL: cfg.AlipayAPIURL, ShopURL: shop, Client: client, Clock: c,
		})
		if err != nil {
			return list, fmt.Errorf("alipay: %w", err)
		}
		if list = append(list, qr); cfg.AlipayWAP == config.SwitchOn {
			list = append(list, phone)
		}
	}
	if cfg.PaymentServiceURL == "" {
		return list, nil
	}
	service, err := paymentService(cfg, signed.Config{ShopURL: shop, Client: client, Clock: c})
	if err != nil {
		return list, err
	}
	return append(list, service), nil
}

// paymentService returns the provider over signed HTTP.
func paymentService(cfg *config.Config, of signed.Config) (payment.Provider, error) {
	secret, err := cfg.ServiceSecret()
	if err != nil {
		return nil, fmt.Errorf("secret of the payment service: %w", err)
	}
	taken, err := cfg.ServiceCurrencies()
	if err != nil {
		return nil, fmt.Errorf("currencies of the payment service: %w", err)
	}
	terms := payment.Terms{Label: payment.Label{English: cfg.PaymentServiceLabel},
		Kind: payment.Kind(strings.ToUpper(cfg.PaymentServiceKind)), Icon: "bank"}
	if taken != nil {
		terms.Least, terms.Most = map[string]int64{}, map[string]int64{}
	}
	for code, bounds := range taken {
		if terms.Least[code] = bounds.Least; bounds.Most != 0 {
			terms.Most[code] = bounds.Most
		}
	}
	of.Name, of.Terms, of.URL, of.Secret = cfg.PaymentServiceName, terms, cfg.PaymentServiceURL, secret
	return signed.New(of)
}
