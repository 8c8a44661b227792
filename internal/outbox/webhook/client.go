package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seckill/internal/platform/fault"
)

// Client sends requests to an address of a setting, by the rules of endpoints:
// to no address inside of the installation, and without following redirects.
type Client struct{ target target }

// NewClient returns a Client. networks are private networks that are allowed; when there
// are any, addresses may use http.
func NewClient(networks []netip.Prefix) Client { return Client{newTarget(networks)} }

// Check refuses an address that no request can be sent to. at names its origin.
func (c Client) Check(address string, at []string) error {
	err := c.target.check(address)
	if bad, ok := errors.AsType[fault.BadField](err); ok {
		return fault.BadField{At: at, Rule: bad.Rule}
	}
	return err
}

// Post sends a request and returns the status code; 0 if there was no response. A status
// other than 2xx is an error.
func (c Client) Post(ctx context.Context, address string, header http.Header, body []byte) (int, error) {
	return c.target.post(ctx, address, header, body)
}

// Signer signs requests as Standard Webhooks defines.
type Signer struct{ signer *standardwebhooks.Webhook }

// NewSigner returns a Signer with a secret of the form whsec_ and base64.
func NewSigner(secret string) (Signer, error) {
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return Signer{}, fmt.Errorf("secret of signed requests: %w", err)
	}
	return Signer{signer}, nil
}

// Header returns the header of a request with a body.
func (s Signer) Header(message string, now time.Time, body []byte) (http.Header, error) {
	return signedHeader([]*standardwebhooks.Webhook{s.signer}, message, now, body)
}

// signedHeader returns the header of a request, with a signature of each signer.
func signedHeader(signers []*standardwebhooks.Webhook, message string, now time.Time, body []byte) (http.Header,
	error) {
	signatures := make([]string, len(signers))
	for i, signer := range signers {
		signature, err := signer.Sign(message, now, body)
		if err != nil {
			return nil, fmt.Errorf("sign message %s: %w", message, err)
		}
		signatures[i] = signature
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", userAgent)
	header.Set(standardwebhooks.HeaderWebhookID, message)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return header, nil
}
