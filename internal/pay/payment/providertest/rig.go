package providertest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"sync"
	"time"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/alipay"
	"seckill/internal/pay/payment/signed"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/pay/payment/wechat"
	"seckill/internal/platform/clock"
)

// Payer is the means of payment of all payments.
const Payer = "2088000000000001"

// Rig is an imitated service with the provider that belongs to it.
type Rig struct {
	Name     string // of the provider
	Currency string // that it takes
	*Bank
	Service Service
	// Provider returns the provider that finds the service at an address.
	Provider func(at Address) (payment.Provider, error)
}

// Address is where service and shop are.
type Address struct {
	Service string // URL of the imitated service
	Shop    string // URL of the shop
	Client  *http.Client
	Clock   clock.Clock
}

// bits is the size of the keys: what both providers require.
const bits = 2048

// Keys are those of a merchant and of a provider.
type Keys struct{ Merchant, Provider *rsa.PrivateKey }

// TestKeys are made once for a process, because making them takes a second.
var TestKeys = sync.OnceValue(func() Keys {
	keys := [2]*rsa.PrivateKey{}
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return Keys{keys[0], keys[1]}
})

// PrivatePEM returns a key as PEM, in PKCS #8.
func PrivatePEM(key *rsa.PrivateKey) string {
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}))
}

// PublicPEM returns the public half of a key as PEM.
func PublicPEM(key *rsa.PrivateKey) string {
	text, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text}))
}

// WeChatKeyID is the id of the platform's public key.
const WeChatKeyID = "PUB_KEY_ID_0119000000012026112000000000000001"

// WeChatConfig returns the settings of the imitated merchant, in public-key mode.
func WeChatConfig(at Address) wechat.Config {
	keys := TestKeys()
	return wechat.Config{
		AppID: "wx0000000000000001", MerchantID: WeChatMerchant, MerchantSerial: WeChatSerial,
		MerchantKey: PrivatePEM(keys.Merchant),
		APIKey:      WeChatAPIKey, PlatformKey: PublicPEM(keys.Provider), PlatformKeyID: WeChatKeyID,
		APIURL: at.Service, ShopURL: at.Shop, Client: at.Client, Clock: at.Clock,
	}
}

// AlipayConfig returns the settings of the imitated application.
func AlipayConfig(at Address) alipay.Config {
	keys := TestKeys()
	return alipay.Config{
		AppID: AlipayApp, Key: PrivatePEM(keys.Merchant), AlipayKey: PublicPEM(keys.Provider),
		APIURL: at.Service, ShopURL: at.Shop, Client: at.Client, Clock: at.Clock,
	}
}

// Rigs returns one of each provider over the network, with empty ledgers.
func Rigs(now func() time.Time) []Rig {
	keys := TestKeys()
	bank := func() *Bank { return NewBank(now) }
	card, phone, qr, pages, service := bank(), bank(), bank(), bank(), bank()
	wechats := func(b *Bank) WeChat { return WeChat{b, &keys.Merchant.PublicKey, keys.Provider, WeChatKeyID} }
	return []Rig{
		{"stripe", "EUR", card, Stripe{card}, func(at Address) (payment.Provider, error) {
			return stripe.New(stripe.Config{
				Key: "sk_test_1", WebhookSecret: StripeSecret, APIURL: at.Service, Client: at.Client,
				Clock: at.Clock,
			}), nil
		}},
		{"wechat", "CNY", qr, wechats(qr), func(at Address) (payment.Provider, error) {
			p, _, err := wechat.New(WeChatConfig(at))
			return p, err
		}},
		{"wechat-h5", "CNY", phone, wechats(phone), func(at Address) (payment.Provider, error) {
			_, p, err := wechat.New(WeChatConfig(at))
			return p, err
		}},
		{"alipay", "CNY", pages, NewAlipay(pages, &keys.Merchant.PublicKey, keys.Provider),
			func(at Address) (payment.Provider, error) {
				p, _, err := alipay.New(AlipayConfig(at))
				return p, err
			}},
		{"service", "EUR", service, NewSigned(service), func(at Address) (payment.Provider, error) {
			return signed.New(signed.Config{
				Name: "service", Terms: payment.Terms{Label: payment.Label{English: "Service"}, Kind: payment.Redirect},
				URL:    at.Service,
				Secret: SignedSecret, ShopURL: at.Shop, Client: at.Client, Clock: at.Clock,
			})
		}},
	}
}
